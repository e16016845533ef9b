package schema_test

import (
	"strings"
	"testing"
)

// TestSamplesOfWhatIsHardToMeet has one schema for every case in which a value must be searched
// for.
func TestSamplesOfWhatIsHardToMeet(t *testing.T) {
	t.Parallel()
	for _, raw := range []string{
		`{"type":"string","minLength":500}`,
		`{"type":"string","maxLength":3}`,
		`{"type":"string","maxLength":0}`,
		`{"type":"string","pattern":"^[A-Z]{3}-\\d{4}$"}`,
		`{"type":"string","pattern":"^(?=.*\\d)(?!0).{8,}$","maxLength":8}`,
		`{"type":"string","pattern":"^[a-z]+$","minLength":40,"maxLength":40}`,
		`{"type":"string","pattern":"^(ab|cd)+(?:ef)?$","minLength":11}`,
		`{"type":"string","allOf":[{"pattern":"^a"},{"pattern":"z$"},{"pattern":"m"}]}`,
		`{"type":"string","format":"email","pattern":"@example\\.com$"}`,
		`{"type":"string","pattern":"[^\\x00-\\x7f]"}`,
		`{"type":"integer","minimum":7,"exclusiveMaximum":9,"multipleOf":4}`,
		`{"type":"integer","exclusiveMinimum":-10,"maximum":-9}`,
		`{"type":"integer","allOf":[{"multipleOf":4},{"multipleOf":6},{"minimum":1,"maximum":12}]}`,
		`{"type":"number","exclusiveMinimum":0,"exclusiveMaximum":1}`,
		`{"type":"number","maximum":-1e300}`,
		`{"type":"integer","not":{"enum":[0,1,2]}}`,
		`{"enum":[1,"a",null],"type":"string"}`,
		`{"const":{"a":[1,2]}}`,
		`{"enum":[1,2,3],"not":{"const":1},"minimum":3}`,
		`{"type":"array","minItems":5,"uniqueItems":true,"items":{"enum":["a","b","c","d","e"]}}`,
		`{"type":"array","minItems":40,"uniqueItems":true,"items":{"type":"string","maxLength":30}}`,
		`{"type":"array","minItems":12,"uniqueItems":true,"items":{"type":"integer","minimum":5}}`,
		`{"type":"array","items":{"type":"integer"},"contains":{"minimum":50},"minContains":2}`,
		`{"type":"array","prefixItems":[{"const":1},{"const":2}],"items":false,"minItems":2}`,
		`{"type":"array","prefixItems":[{"const":1}],"contains":{"const":"x"}}`,
		`{"type":"object","minProperties":4,"properties":{"a":{},"b":{}}}`,
		`{"type":"object","minProperties":3,"patternProperties":{"^k\\d+$":{"type":"integer"}},"additionalProperties":false}`,
		`{"type":"object","minProperties":2,"propertyNames":{"pattern":"^[a-z]{2}$"},"additionalProperties":{"type":"integer"}}`,
		`{"type":"object","required":["a"],"maxProperties":1,"properties":{"a":{},"b":{},"c":{}}}`,
		`{"required":["a"],"dependentRequired":{"a":["b"],"b":["c"]},"properties":{"c":{"const":3}}}`,
		`{"type":"object","properties":{"a":{},"b":{}},"not":{"required":["b"]}}`,
		`{"type":"object","required":["a"],"dependentSchemas":{"a":{"required":["b"]}},"properties":{"b":{"const":7}}}`,
		`{"type":"object","required":["k"],"properties":{"k":{"enum":["x","y"]}},"if":{"properties":{"k":{"const":"y"}}},` +
			`"then":{"required":["v"]},"else":{"required":["w"]}}`,
		`{"oneOf":[{"type":"integer"},{"type":"integer","minimum":0}]}`,
		`{"oneOf":[{"required":["a"]},{"required":["b"]}],"type":"object","properties":{"a":{},"b":{}}}`,
		`{"anyOf":[false,{"type":"object","required":["x"],"properties":{"x":false}},{"const":"last"}]}`,
		`{"allOf":[{"properties":{"a":{"minimum":3}},"required":["a"]},{"properties":{"a":{"type":"integer","maximum":3}}}]}`,
		`{"$ref":"#/$defs/n","$defs":{"n":{"type":"object","required":["next"],"properties":{"next":{"anyOf":[{"$ref":"#/$defs/n"},` +
			`{"type":"null"}]}}}}}`,
		`{"type":"object","required":["l","r"],"properties":{"l":{"oneOf":[{"$ref":"#"},{"type":"integer"}]},"r":{"oneOf":[{"$ref":"#"},` +
			`{"type":"integer"}]}}}`,
		`{"type":"array","minItems":1,"items":{"anyOf":[{"$ref":"#"},{"const":"leaf"}]}}`,
		`{"properties":{"a":{"$ref":"#"}},"type":"object"}`,
		`{"$ref":"#/$defs/a%20b","$defs":{"a b":{"const":1}}}`,
		strings.Repeat(`{"type":"array","minItems":1,"items":`, 20) + `{"const":1}` + strings.Repeat(`}`, 20),
		`{}`, `{"type":["null","boolean"]}`,
		`{"unevaluatedProperties":false,"allOf":[{"properties":{"a":{}}}],"minProperties":1,"type":"object"}`,
	} {
		s := compile(t, raw)
		sample, ok := s.Sample("")
		if bad := s.Validate(sample); !ok || bad != nil {
			t.Errorf("%.200s: the sample %s (%t) is not valid: %v", raw, sample, ok, bad)
		}
	}
}

func TestSamplesOfNothingAreNone(t *testing.T) {
	t.Parallel()
	for _, raw := range []string{
		`{"not":{}}`, `{"type":"string","minLength":3,"maxLength":2}`, `{"enum":["a"],"type":"integer"}`,
		`{"type":"object","required":["a"],"properties":{"a":false}}`, `{"minimum":2,"maximum":1,"type":"number"}`,
		`{"type":"object","required":["a"],"properties":{"a":{"$ref":"#"}}}`,
		`{"type":"array","minItems":3,"uniqueItems":true,"items":{"type":"boolean"}}`,
		// These have values, but of gigabytes.
		`{"type":"string","minLength":2147483647}`, `{"type":"string","pattern":"^(a*b*)*$","minLength":2147483647}`,
		`{"type":"object","minProperties":2147483647}`, `{"type":"array","minItems":2147483647}`,
		`{"type":"array","contains":{"const":1},"minContains":2147483647}`,
	} {
		if sample, ok := compile(t, raw).Sample("x"); ok {
			t.Errorf("%s: %s", raw, sample)
		}
	}
}

func TestSamplesAreMadeOfTheWords(t *testing.T) {
	t.Parallel()
	s := compile(t, `{"properties":{"title":{"type":"string","maxLength":12},"body":{"type":"string"}}}`)
	sample, ok := s.Sample("Tell me\n\nabout \"Parley\" and its streams")
	if want := `{"body":"Tell me about \"Parley\" and its streams","title":"Tell me abou"}`; !ok || string(sample) != want {
		t.Errorf("%s, want %s", sample, want)
	}
}
