package httptool

import (
	"context"
	"mime"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/parley-server/parley/internal/tool"
	"github.com/parley-server/parley/internal/tool/result"
)

// content returns what the model reads of a response. Media become files of the session.
func (t *httpTool) content(ctx context.Context, call tool.Call, a answer) (string, error) {
	w := result.Writer{Env: t.env, Call: call}
	kind, _, _ := mime.ParseMediaType(a.kind)
	switch {
	case len(a.body) == 0:
	case isText(a):
		w.Line(string(a.body))
	default:
		if err := w.Media(ctx, "response", kind, a.body); err != nil {
			return "", err
		}
	}
	return w.Text(), nil
}

func isJSON(kind string) bool { return kind == "application/json" || strings.HasSuffix(kind, "+json") }

// textKinds are media types of texts besides text/* and JSON.
var textKinds = []string{"application/xml", "application/javascript", "application/yaml", "application/x-www-form-urlencoded",
	"application/x-ndjson"}

// isText reports whether the model can read the body of a response.
func isText(a answer) bool {
	kind, _, err := mime.ParseMediaType(a.kind)
	if err != nil {
		return utf8.Valid(a.body)
	}
	return strings.HasPrefix(kind, "text/") || isJSON(kind) || strings.HasSuffix(kind, "+xml") || slices.Contains(textKinds, kind)
}
