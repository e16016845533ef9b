package tool_test

import (
	"encoding/json"
	"testing"

	"github.com/parley-server/parley/internal/tool"
)

func TestSchemaOfAnInput(t *testing.T) {
	t.Parallel()
	type input struct {
		URL     string            `json:"url" jsonschema:"address, with its scheme"`
		Content *string           `json:"content"`
		Method  string            `json:"method,omitempty"`
		Headers map[string]string `json:"headers,omitempty"`
		Body    json.RawMessage   `json:"body,omitempty" jsonschema:"text or JSON"`
		Seconds int               `json:"seconds,omitempty"`
		Limit   int               `json:"limit,omitempty"`
	}
	const want = `{"type":"object","properties":{` +
		`"url":{"type":"string","description":"address, with its scheme"},"content":{"type":"string"},` +
		`"method":{"type":"string","enum":["GET","PUT"]},"headers":{"type":"object","additionalProperties":{"type":"string"}},` +
		`"body":{"description":"text or JSON"},"seconds":{"type":"integer","minimum":1,"maximum":120},"limit":{"type":"integer","minimum":1}},` +
		`"required":["url","content"],"additionalProperties":false}`
	got := tool.SchemaOf[input](tool.OneOf("method", "GET", "PUT"), tool.Between("seconds", 1, 120), tool.AtLeast("limit", 1))
	if string(got) != want {
		t.Errorf("the schema is\n%s, want\n%s", got, want)
	}
	defer func() {
		if recover() == nil {
			t.Error("a constraint without a member was accepted")
		}
	}()
	tool.SchemaOf[input](tool.AtLeast("limits", 1))
}
