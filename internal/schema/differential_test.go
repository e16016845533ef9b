package schema_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	oracle "github.com/santhosh-tekuri/jsonschema/v6"
	"pgregory.net/rapid"

	"github.com/parley-server/parley/internal/schema"
)

// second compiles a schema with the other engine.
func second(raw []byte) (*oracle.Schema, error) {
	document, err := oracle.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		return nil, err
	}
	c := oracle.NewCompiler()
	c.AssertFormat()
	c.UseLoader(nowhere{})
	if err := c.AddResource("test:///schema.json", document); err != nil {
		return nil, err
	}
	return c.Compile("test:///schema.json")
}

type nowhere struct{}

func (nowhere) Load(url string) (any, error) { return nil, errors.New("nothing is fetched: " + url) }

// fits validates a value with the other engine.
func fits(t interface{ Fatalf(string, ...any) }, s *oracle.Schema, value []byte) bool {
	v, err := oracle.UnmarshalJSON(bytes.NewReader(value))
	if err != nil {
		t.Fatalf("%s: %v", value, err)
	}
	return s.Validate(v) == nil
}

// TestVerdictsAreThoseOfAnotherEngine draws schemas of all accepted keywords, with references and
// recursion, and values that nearly fit them.
func TestVerdictsAreThoseOfAnotherEngine(t *testing.T) {
	t.Parallel()
	var seen tally
	rapid.Check(t, func(t *rapid.T) {
		for range 20 {
			seen.compare(t, encode(drawSchema(t)))
		}
	})
	t.Logf("%+v", seen)
	if seen.accepted < seen.refused || seen.fit < seen.unfit/10 || seen.unfit < seen.fit/10 {
		t.Error("too few cases were tested")
	}
}

// tally counts the comparisons.
type tally struct{ accepted, refused, fit, unfit int }

// compare draws values for a schema and validates them with both engines.
func (c *tally) compare(t *rapid.T, raw []byte) {
	s, err := schema.Compile(raw)
	if err != nil {
		c.refused++
		if !strings.Contains(err.Error(), "without going into") && !strings.Contains(err.Error(), "additionalProperties does not see") &&
			!strings.Contains(err.Error(), "No schema exists at") {
			t.Fatalf("%s is refused: %v", raw, err)
		}
		return
	}
	c.accepted++
	other, err := second(raw)
	if err != nil {
		t.Fatalf("%s is accepted, but another engine rejects it: %v", raw, err)
	}
	for _, v := range drawValues(t, s) {
		value := encode(v)
		bad := s.Validate(value)
		want := fits(t, other, value)
		if (bad == nil) != want {
			t.Fatalf("schema %s\nvalue %s\nfits: %t, by another engine: %t\n%v", raw, value, bad == nil, want, bad)
		}
		for _, b := range bad {
			if !there(v, b.Path) {
				t.Fatalf("schema %s\nvalue %s\nthe place %q does not exist: %s", raw, value, b.Path, b.Message)
			}
		}
		if want {
			c.fit++
		} else {
			c.unfit++
		}
	}
}

// drawValues draws some values, and some that nearly conform.
func drawValues(t *rapid.T, s *schema.Schema) []any {
	values := []any{drawValue(t, 3), drawValue(t, 1)}
	sample, ok := s.Sample("some words to use")
	if !ok {
		return values
	}
	if bad := s.Validate(sample); bad != nil {
		t.Fatalf("%s: the sample %s is not valid: %v", s.Raw(), sample, bad)
	}
	var v any
	if err := json.Unmarshal(sample, &v); err != nil {
		t.Fatal(err)
	}
	return append(values, v, bend(t, v), bend(t, bend(t, v)))
}

// TestUnevaluatedPropertiesSeesWhatOthersLookedInto tests all small objects.
func TestUnevaluatedPropertiesSeesWhatOthersLookedInto(t *testing.T) {
	t.Parallel()
	for _, raw := range []string{
		`{"properties":{"a":{}},"anyOf":[{"properties":{"b":{"const":1}},"required":["b"]},{"properties":{"c":{}},"required":["c"]}],` +
			`"unevaluatedProperties":false}`,
		`{"oneOf":[{"properties":{"a":{"const":1}},"required":["a"]},{"properties":{"b":{}},"required":["b"]}],` +
			`"unevaluatedProperties":{"const":2}}`,
		`{"if":{"properties":{"a":{"const":1}},"required":["a"]},"then":{"properties":{"b":{}}},"else":{"properties":{"c":{}}},` +
			`"unevaluatedProperties":false}`,
		`{"not":{"properties":{"a":{"const":2}},"required":["a"]},"unevaluatedProperties":false}`,
		`{"allOf":[{"$ref":"#/$defs/x"},{"patternProperties":{"^b":{}}}],"unevaluatedProperties":false,"$defs":{"x":{"properties":{"a":{}}}}}`,
		`{"dependentSchemas":{"a":{"properties":{"b":{}}}},"properties":{"a":{}},"unevaluatedProperties":false}`,
		`{"allOf":[{"properties":{"a":{}},"unevaluatedProperties":{"const":1}}],"unevaluatedProperties":false}`,
		`{"properties":{"a":{"properties":{"b":{}}}},"unevaluatedProperties":false}`,
		`{"$ref":"#/$defs/x","properties":{"b":{}},"unevaluatedProperties":false,"$defs":{"x":{"properties":{"a":{}},` +
			`"additionalProperties":{"const":1}}}}`,
	} {
		s := compile(t, raw)
		other, err := second([]byte(raw))
		if err != nil {
			t.Fatal(err)
		}
		for i := range 81 { // each of four members is absent, 1 or 2
			v := object{}
			for _, name := range []string{"a", "b", "c", "d"} {
				if i%3 > 0 {
					v[name] = i % 3
				}
				i /= 3
			}
			value := encode(v)
			if got, want := s.Validate(value) == nil, fits(t, other, value); got != want {
				t.Errorf("%s: %s valid: %t, by another engine: %t", raw, value, got, want)
			}
		}
	}
}
