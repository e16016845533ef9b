package openai_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/parley-server/parley/internal/model"
)

// TestStrictIsPromisedOnlyWhereOpenAICan sends schemas to OpenAI's own address.
func TestStrictIsPromisedOnlyWhereOpenAICan(t *testing.T) {
	t.Parallel()
	deep := `{"type":"string"}`
	for range 11 {
		deep = `{"type":"object","properties":{"a":` + deep + `},"required":["a"],"additionalProperties":false}`
	}
	for schema, strict := range map[string]bool{
		`{"type":"object","properties":{"a":{"type":["string","null"],"format":"date"}},"required":["a"],"additionalProperties":false}`: true,
		`{"type":"object","properties":{"a":{"$ref":"#/$defs/n"}},"required":["a"],"additionalProperties":false,
			"$defs":{"n":{"type":"object","properties":{"next":{"anyOf":[{"$ref":"#/$defs/n"},{"type":"null"}]}},"required":["next"],"additionalProperties":false}}}`: true,
		`{"type":"array","items":{"enum":["a","b"]}}`:                                  true, // wrapped
		`{"type":"object","properties":{},"required":[],"additionalProperties":false}`: true,
		`{"type":"object"}`: false,
		`{"type":"object","properties":{"a":{"type":"string"}},"required":[],"additionalProperties":false}`:                        false,
		`{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]}`:                                                  false,
		`{"type":"object","properties":{"a":{}},"required":["a"],"additionalProperties":false}`:                                    false,
		`{"type":"object","properties":{"a":true},"required":["a"],"additionalProperties":false}`:                                  false,
		`{"type":"object","properties":{"a":{"type":"object"}},"required":["a"],"additionalProperties":false}`:                     false,
		`{"type":"object","properties":{"a":{"type":"string","minLength":1}},"required":["a"],"additionalProperties":false}`:       false,
		`{"type":"object","properties":{"a":{"type":"string","default":"x"}},"required":["a"],"additionalProperties":false}`:       false,
		`{"type":"object","properties":{"a":{"type":"string","format":"uri"}},"required":["a"],"additionalProperties":false}`:      false,
		`{"type":"object","properties":{"a":{"type":"string","pattern":"^(?=a)b"}},"required":["a"],"additionalProperties":false}`: false,
		`{"type":"object","properties":{"a":{"oneOf":[{"type":"string"}]}},"required":["a"],"additionalProperties":false}`:         false,
		`{"type":"object","properties":{"a":{"$ref":"#/$defs/n","title":"x"}},"required":["a"],"additionalProperties":false,` +
			`"$defs":{"n":{"type":"string"}}}`: false,
		`{"type":"object","properties":{"a":{"type":"array","items":{"type":"object","properties":{"b":{"type":"string"}},` +
			`"additionalProperties":false}}},"required":["a"],"additionalProperties":false}`: false,
		deep: false,
	} {
		got, _ := sentToOpenAI(t, model.Request{System: "Be kind.", Output: &model.Output{Name: "final answer", Schema: json.RawMessage(schema)}})
		format := got["response_format"].(map[string]any)["json_schema"].(map[string]any)
		if format["strict"] != strict || format["name"] != "final_answer" {
			t.Errorf("%s: strict %v, name %v", schema, format["strict"], format["name"])
		}
		system := got["messages"].([]any)[0].(map[string]any)["content"]
		if system != "Be kind." || got["tools"] != nil {
			t.Errorf("system text %q, tools %v", system, got["tools"])
		}
	}
}

func TestOtherServersAreToldTheSchemaToo(t *testing.T) {
	t.Parallel()
	got, _ := sent(t, model.Request{System: "Be kind.", Output: &model.Output{Name: "x",
		Schema: json.RawMessage(`{"type":"object","title":"T"}`)}})
	system := got["messages"].([]any)[0].(map[string]any)["content"].(string)
	if !strings.HasPrefix(system, "Be kind.\n\n") || !strings.HasSuffix(system, `{"type":"object","title":"T"}`) {
		t.Errorf("system text %q", system)
	}
}
