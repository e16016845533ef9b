package mcptool

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/parley-server/parley/internal/tool"
	"github.com/parley-server/parley/internal/tool/result"
)

// result returns what the model reads of a result.
func (t serverTool) result(ctx context.Context, call tool.Call, res *mcp.CallToolResult) (tool.Result, error) {
	w := &writer{result.Writer{Env: t.peer.env, Call: call}}
	for _, c := range res.Content {
		if err := w.add(ctx, c); err != nil {
			return tool.Result{}, err
		}
	}
	w.addStructured(res.StructuredContent)
	return tool.Result{OK: !res.IsError, Output: w.Text()}, nil
}

// writer collects the parts of a result.
type writer struct{ result.Writer }

func (w *writer) add(ctx context.Context, c mcp.Content) error {
	switch c := c.(type) {
	case *mcp.TextContent:
		w.Line(c.Text)
	case *mcp.ImageContent:
		return w.Media(ctx, "image", c.MIMEType, c.Data)
	case *mcp.AudioContent:
		return w.Media(ctx, "audio", c.MIMEType, c.Data)
	case *mcp.ResourceLink:
		w.Line(fmt.Sprintf("[resource %q: %s]", c.Name, c.URI))
	case *mcp.EmbeddedResource:
		if c.Resource == nil {
			return nil
		}
		if c.Resource.Blob != nil {
			return w.Media(ctx, "resource "+c.Resource.URI, c.Resource.MIMEType, c.Resource.Blob)
		}
		w.Line(fmt.Sprintf("[resource %s]\n%s", c.Resource.URI, c.Resource.Text))
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
	if json.Unmarshal([]byte(w.String()), &same) == nil {
		if again, err := json.Marshal(same); err == nil && bytes.Equal(again, raw) {
			return
		}
	}
	w.Line(string(raw))
}
