// Package result writes what the model reads of a result that another server sends. Media become files
// of the session's folder; the agent shortens long texts of all tools.
package result

import (
	"context"
	"errors"
	"fmt"
	"mime"
	"strings"

	"github.com/parley-server/parley/internal/tool"
)

const maxFiles = 16 // files of one result

// Env keeps files.
type Env interface {
	// KeepResult writes a part of a call's result into a file of the session's folder, and returns its
	// path there.
	KeepResult(ctx context.Context, call tool.Call, ext string, content []byte) (file string, err error)
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

// Text returns the lines for the model.
func (w *Writer) Text() string {
	if w.out.Len() == 0 {
		return "[no content]"
	}
	return strings.ToValidUTF8(w.out.String(), "\uFFFD")
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
	file, err := w.Env.KeepResult(ctx, w.Call, ext, data)
	if refused, ok := errors.AsType[tool.Refusal](err); ok {
		return "it is not kept: " + string(refused), nil
	}
	return "all of it is in /workspace/" + file, err
}
