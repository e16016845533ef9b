package toolfile_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/parley-server/parley/internal/toolfile"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestDefinitionsInAllForms reads tools as the guide and the API have them, in YAML and JSON.
func TestDefinitionsInAllForms(t *testing.T) {
	t.Parallel()
	const of = `{"description":"Order.","input_schema":{"type":"object"},"http":{"method":"POST","path":"/orders"}}`
	const guide = "description: Order.\nmethod: POST\nurl: https://erp.example/orders\ninput_schema: {type: object}\nheaders: {X-Team: a}\n"
	for name, text := range map[string]string{
		"the guide":         guide,
		"the guide in JSON": `{"description":"Order.","method":"POST","url":"/orders","input_schema":{"type":"object"}}`,
		"the API":           of,
		"a list":            "[" + of + "]",
		"the API in YAML":   "description: Order.\ninput_schema: {type: object}\nhttp: {method: POST, path: /orders}",
		"a list in YAML":    "- description: Order.\n  input_schema: {type: object}\n  http: {method: POST, path: /orders}",
	} {
		d, err := toolfile.ParseAny(text)
		if err != nil || !equalJSON(string(d.Tools), "["+of+"]") {
			t.Errorf("%s: %s, %v", name, d.Tools, err)
		}
		if name == "the guide" && (d.Host != "https://erp.example" || d.Headers["X-Team"] != "a") {
			t.Errorf("%s: %+v", name, d)
		}
	}
	for text, want := range map[string]string{
		"":                           "neither",
		"7":                          "neither",
		"{":                          "line",
		"description: x\npath: /":    "field path not found",
		"http: {1: x}":               "not all texts",
		"input_schema: {a: {1: 2}}":  "not all texts",
		strings.Repeat("a: &a {", 9): "line",
	} {
		if _, err := toolfile.ParseAny(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// equalJSON reports whether two texts are the same JSON.
func equalJSON(a, b string) bool {
	var x, y any
	return json.Unmarshal([]byte(a), &x) == nil && json.Unmarshal([]byte(b), &y) == nil && reflect.DeepEqual(x, y)
}
