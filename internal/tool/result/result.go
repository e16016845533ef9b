// Package result writes what the model reads of a result that another server sends. Media and long texts
// become files of the session's folder.
package result

import (
	"context"
	"errors"
	"fmt"
	"mime"
	"strings"

	"github.com/parley-server/parley/internal/text"
	"github.com/parley-server/parley/internal/tool"
)

const (
	maxText  = 64 << 10 // bytes of a result that the model reads; a longer one becomes a file
	preview  = 4000     // characters of a longer one that the model reads
	maxFiles = 16       // files of one result
	folder   = "tool-results/"
)

// Env keeps files.
type Env interface {
	// Write writes a file of the session's folder.
	Write(ctx context.Context, call tool.Call, name string, content []byte) error
}

// Writer collects the parts of the result of a call.
type Writer struct {
	Env  Env
	Call tool.Call

	out   strings.Builder
	files int
}

// Line adds lines.
func (w *Writer) Line(s string) {
	if w.out.Len() > 0 {
		w.out.WriteString("\n")
	}
	w.out.WriteString(s)
}

// String returns the lines.
func (w *Writer) String() string { return w.out.String() }

// Text returns the lines for the model. Too many of them become a file with the extension ext.
func (w *Writer) Text(ctx context.Context, ext string) (string, error) {
	out := strings.ToValidUTF8(w.out.String(), "\uFFFD")
	if len(out) > maxText {
		where, err := w.keep(ctx, ext, []byte(out))
		if err != nil {
			return "", err
		}
		out = text.Prefix(out, preview) + "\n[cut here: " + where + "]"
	}
	if out == "" {
		out = "[no content]"
	}
	return out, nil
}

// Media keeps a medium as a file, and adds a line with its place.
func (w *Writer) Media(ctx context.Context, what, kind string, data []byte) error {
	ext := "bin"
	if known, err := mime.ExtensionsByType(kind); err == nil && len(known) > 0 {
		ext = strings.TrimPrefix(known[0], ".")
	}
	where, err := w.keep(ctx, ext, data)
	if err != nil {
		return err
	}
	w.Line(fmt.Sprintf("[%s, %s: %s]", what, kind, where))
	return nil
}

// keep writes a file of the session's folder, and returns where it is for the model.
func (w *Writer) keep(ctx context.Context, ext string, data []byte) (where string, err error) {
	if w.files++; w.files > maxFiles {
		return "it is not kept, the result has too many files", nil
	}
	name := fmt.Sprintf("%s%s-%d.%s", folder, plainID(w.Call.ID), w.files, ext)
	err = w.Env.Write(ctx, w.Call, name, data)
	if refused, ok := errors.AsType[tool.Refusal](err); ok {
		return "it is not kept: " + string(refused), nil
	}
	return "all of it is in /workspace/" + name, err
}

// plainID returns an id as a part of a file's name.
func plainID(id string) string {
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-", r) {
			return r
		}
		return '-'
	}, text.Prefix(id, 64))
}
