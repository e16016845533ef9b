package mcptool

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/parley-server/parley/internal/text"
	"github.com/parley-server/parley/internal/tool"
)

const (
	maxText  = 64 << 10 // bytes of a result that the model reads; a longer one becomes a file
	preview  = 4000     // characters of a longer one that the model reads
	maxFiles = 16       // files of one result
	folder   = "tool-results/"
)

// result returns what the model reads of a result. Media and long texts become files of the session.
func (t serverTool) result(ctx context.Context, call tool.Call, res *mcp.CallToolResult) (tool.Result, error) {
	w := &writer{env: t.peer.env, call: call}
	for _, c := range res.Content {
		if err := w.add(ctx, c); err != nil {
			return tool.Result{}, err
		}
	}
	w.addStructured(res.StructuredContent)
	out := strings.ToValidUTF8(w.out.String(), "\uFFFD")
	if len(out) > maxText {
		where, err := w.keep(ctx, "txt", []byte(out))
		if err != nil {
			return tool.Result{}, err
		}
		out = text.Prefix(out, preview) + "\n[cut here: " + where + "]"
	}
	if out == "" {
		out = "[no content]"
	}
	return tool.Result{OK: !res.IsError, Output: out}, nil
}

// writer collects the parts of a result.
type writer struct {
	env   Env
	call  tool.Call
	out   strings.Builder
	files int
}

func (w *writer) line(s string) {
	if w.out.Len() > 0 {
		w.out.WriteString("\n")
	}
	w.out.WriteString(s)
}

func (w *writer) add(ctx context.Context, c mcp.Content) error {
	switch c := c.(type) {
	case *mcp.TextContent:
		w.line(c.Text)
	case *mcp.ImageContent:
		return w.media(ctx, "image", c.MIMEType, c.Data)
	case *mcp.AudioContent:
		return w.media(ctx, "audio", c.MIMEType, c.Data)
	case *mcp.ResourceLink:
		w.line(fmt.Sprintf("[resource %q: %s]", c.Name, c.URI))
	case *mcp.EmbeddedResource:
		if c.Resource == nil {
			return nil
		}
		if c.Resource.Blob != nil {
			return w.media(ctx, "resource "+c.Resource.URI, c.Resource.MIMEType, c.Resource.Blob)
		}
		w.line(fmt.Sprintf("[resource %s]\n%s", c.Resource.URI, c.Resource.Text))
	}
	return nil
}

// addStructured adds structured content, unless the text is the same JSON.
func (w *writer) addStructured(content any) {
	if content == nil {
		return
	}
	raw, err := json.Marshal(content)
	if err != nil {
		return
	}
	var same any
	if json.Unmarshal([]byte(w.out.String()), &same) == nil {
		if again, err := json.Marshal(same); err == nil && bytes.Equal(again, raw) {
			return
		}
	}
	w.line(string(raw))
}

// media keeps a medium as a file.
func (w *writer) media(ctx context.Context, what, kind string, data []byte) error {
	ext := "bin"
	if known, err := mime.ExtensionsByType(kind); err == nil && len(known) > 0 {
		ext = strings.TrimPrefix(known[0], ".")
	}
	where, err := w.keep(ctx, ext, data)
	if err != nil {
		return err
	}
	w.line(fmt.Sprintf("[%s, %s: %s]", what, kind, where))
	return nil
}

// keep writes a file of the session's folder, and returns where it is for the model.
func (w *writer) keep(ctx context.Context, ext string, data []byte) (where string, err error) {
	if w.files++; w.files > maxFiles {
		return "it is not kept, the result has too many files", nil
	}
	name := fmt.Sprintf("%s%s-%d.%s", folder, plainID(w.call.ID), w.files, ext)
	err = w.env.Write(ctx, w.call, name, data)
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
