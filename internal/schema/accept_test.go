package schema_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/parley-server/parley/internal/schema"
)

// read returns the schemas of a folder in testdata, which pydantic and zod wrote.
func read(t *testing.T, folder string) map[string]json.RawMessage {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", folder, "*.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no schemas: %v", err)
	}
	all := make(map[string]json.RawMessage)
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all[filepath.Base(file)] = data
	}
	return all
}

func compile(t testing.TB, raw string) *schema.Schema {
	t.Helper()
	s, err := schema.Compile(json.RawMessage(raw))
	if err != nil {
		t.Fatalf("%s is refused: %v", raw, err)
	}
	return s
}

// TestWhatPydanticAndZodWriteIsAccepted also makes a value of each schema, which
// another engine must agree to.
func TestWhatPydanticAndZodWriteIsAccepted(t *testing.T) {
	t.Parallel()
	for name, raw := range read(t, "accepted") {
		s, err := schema.Compile(raw)
		if err != nil {
			t.Errorf("%s is refused: %v", name, err)
			continue
		}
		if string(s.Raw()) != string(raw) {
			t.Errorf("%s: the schema was changed", name)
		}
		sample, ok := s.Sample("What is the answer?")
		if bad := s.Validate(sample); !ok || bad != nil {
			t.Errorf("%s: the sample %s (%t) does not fit: %v", name, sample, ok, bad)
			continue
		}
		other, err := second(raw)
		switch {
		case strings.Contains(name, "formats") || strings.Contains(name, "shape-openai"):
			// Lookaheads, and "exclusiveMinimum": true, are more than the other one takes.
		case err != nil:
			t.Errorf("%s: another engine refuses it: %v", name, err)
		case !fits(t, other, sample):
			t.Errorf("%s: another engine says that %s does not fit", name, sample)
		}
	}
}

func TestValuesOfRealSchemas(t *testing.T) {
	t.Parallel()
	all := read(t, "accepted")
	for name, values := range map[string]struct{ good, bad map[string]string }{
		"zod4-strict.json": {
			good: map[string]string{"": `{"a":"x","inner":{"a":1,"b":true}}`},
			bad: map[string]string{
				"/b":       `{"a":"x","b":true,"inner":{"a":1,"b":true}}`, // a name of the inner object is unknown in the outer
				"/inner/c": `{"a":"x","inner":{"a":1,"b":true,"c":1}}`,
				"/inner":   `{"a":"x","inner":{"a":1}}`,
				"/inner/b": `{"a":"x","inner":{"a":1,"b":"true"}}`,
			},
		},
		"pydantic-tree.json": {
			good: map[string]string{"": `{"value":1,"children":[{"value":2,"children":[{"value":3}]}]}`},
			bad: map[string]string{
				"/children/0/children/0/value": `{"value":1,"children":[{"value":2,"children":[{"value":"3"}]}]}`,
				"/value":                       `{"value":1.5}`,
				"":                             `[]`,
			},
		},
		"pydantic-zoo.json": {
			good: map[string]string{"": `{"pets":[{"kind":"cat"},{"kind":"wolf","barks":true}]}`},
			bad: map[string]string{
				"/pets/0":       `{"pets":[{"kind":"bird"}]}`,
				"/pets/0/barks": `{"pets":[{"kind":"dog","barks":"loudly"}]}`,
				"/pets":         `{"pets":[]}`,
			},
		},
		"pydantic-person.json": {
			bad: map[string]string{
				"/home/zip": `{"name":"A","age":1,"seen":"2026-01-01T00:00:00Z","id":"9b0f5c4e-0000-4000-8000-000000000000","level":1,"point":[0,1],"home":{"street":"S","zip":"123"}}`,
				"/work/zip": `{"name":"A","age":1,"seen":"2026-01-01T00:00:00Z","id":"9b0f5c4e-0000-4000-8000-000000000000","level":1,"point":[0,1],"home":{"street":"S","zip":"12345"},"work":{"street":"S","zip":""}}`,
				"/seen":     `{"name":"A","age":1,"seen":"today","id":"9b0f5c4e-0000-4000-8000-000000000000","level":1,"point":[0,1],"home":{"street":"S","zip":"12345"}}`,
				"/point":    `{"name":"A","age":1,"seen":"2026-01-01T00:00:00Z","id":"9b0f5c4e-0000-4000-8000-000000000000","level":1,"point":[0,1,2],"home":{"street":"S","zip":"12345"}}`,
				"/age":      `{"name":"A","age":150,"seen":"2026-01-01T00:00:00Z","id":"9b0f5c4e-0000-4000-8000-000000000000","level":1,"point":[0,1],"home":{"street":"S","zip":"12345"}}`,
			},
		},
		"zod3-rest.json": {
			good: map[string]string{"": `["a",1,2]`},
			bad:  map[string]string{"/2": `["a",1,"2"]`, "/0": `[1]`},
		},
		"zod3-both-named.json": {
			good: map[string]string{"": `{"a":"x","b":1}`},
			bad:  map[string]string{"/c": `{"a":"x","b":1,"c":1}`},
		},
		"zod3-shape-openai.json": {
			good: map[string]string{"": `{"kind":"circle","radius":0.1}`},
			bad:  map[string]string{"/radius": `{"kind":"circle","radius":0}`, "": `{"kind":"line"}`},
		},
	} {
		s := compile(t, string(all[name]))
		for _, value := range values.good {
			if bad := s.Validate(json.RawMessage(value)); bad != nil {
				t.Errorf("%s: %s does not fit: %v", name, value, bad)
			}
		}
		for path, value := range values.bad {
			if bad := s.Validate(json.RawMessage(value)); len(bad) != 1 || bad[0].Path != path {
				t.Errorf("%s: %s has the violations %+v, want one at %q", name, value, bad, path)
			}
		}
	}
}

func TestViolationsAreToldAllAtOnceAndAtMostAHundred(t *testing.T) {
	t.Parallel()
	s := compile(t, `{"type":"object","required":["a","b"],"properties":{"n":{"type":"integer"},"s":{"maxLength":2}},"additionalProperties":false}`)
	if bad := s.Validate(json.RawMessage(`{"n":"1","s":"long","x":1}`)); len(bad) != 5 {
		t.Errorf("%+v", bad)
	}
	list := compile(t, `{"items":{"type":"integer"}}`)
	many, err := json.Marshal(make([]string, 5000))
	if err != nil {
		t.Fatal(err)
	}
	if bad := list.Validate(many); len(bad) != 100 {
		t.Errorf("%d violations", len(bad))
	}
}

func TestViolationsOfTheOneAlternativeThatWasMeantAreTold(t *testing.T) {
	t.Parallel()
	s := compile(t, `{"anyOf":[{"$ref":"#/$defs/P"},{"type":"null"}],"$defs":{"P":{"type":"object","required":["name"]}}}`)
	for value, want := range map[string]string{`{}`: `"name" is required`, `7`: "fits none of the 2 alternatives"} {
		if bad := s.Validate(json.RawMessage(value)); len(bad) != 1 || bad[0].Message != want {
			t.Errorf("%s: %+v, want %q", value, bad, want)
		}
	}
}

func TestWhatIsNoPlainJSONDoesNotFit(t *testing.T) {
	t.Parallel()
	s := compile(t, `{}`)
	for _, value := range []string{``, `{`, `{} {}`, "```json\n{}\n```", `{"a":1,"a":2}`, `[{"x":{"b":1,"b":1}}]`, `1e999`, `{'a':1}`} {
		if bad := s.Validate(json.RawMessage(value)); len(bad) != 1 {
			t.Errorf("%s: %+v", value, bad)
		}
	}
	if bad := s.Validate(json.RawMessage(`[{"x/y":{"b":1,"b":1}}]`)); bad[0].Path != "/0/x~1y/b" {
		t.Errorf("%+v", bad)
	}
}

func TestNumbersAreComparedByTheirValue(t *testing.T) {
	t.Parallel()
	for raw, values := range map[string]struct{ good, bad string }{
		`{"uniqueItems":true}`:   {`[0,1,"0",[0],{"a":0}]`, `[0,-0]`},
		`{"const":[1,{"a":20}]}`: {`[1.0,{"a":2e1}]`, `[1,{"a":21}]`},
		`{"enum":[0]}`:           {`-0.0`, `false`},
		`{"type":"integer"}`:     {`1e22`, `1.5`},
		`{"multipleOf":3}`:       {`9e0`, `1e22`},
	} {
		s := compile(t, raw)
		if bad := s.Validate(json.RawMessage(values.good)); bad != nil {
			t.Errorf("%s: %s does not fit: %v", raw, values.good, bad)
		}
		if s.Validate(json.RawMessage(values.bad)) == nil {
			t.Errorf("%s: %s fits", raw, values.bad)
		}
	}
}

func TestLookaheadsAtTheBeginning(t *testing.T) {
	t.Parallel()
	for pattern, values := range map[string]struct{ good, bad []string }{
		`^(?=.*[A-Z])(?=.*\d)(?!.*\s).{4,}$`: {[]string{"Abc1", "1xxZ"}, []string{"abc1", "Abcd", "Ab 1", "A1"}},
		`^(?!\.)(?!.*\.\.)[a-z.]+@x$`:        {[]string{"a.b@x"}, []string{".a@x", "a..b@x", "a@y"}},
		`^(?!^[-+.]*$)[+-]?0*\d*\.?\d*$`:     {[]string{"1.5", "-3"}, []string{"", "-", "."}},
		`^(?=[)(|\]\)]$)(?:.|\|)$`:           {[]string{")", "|", "]"}, []string{"a"}},
	} {
		data, err := json.Marshal(map[string]string{"pattern": pattern})
		if err != nil {
			t.Fatal(err)
		}
		s := compile(t, string(data))
		for _, good := range values.good {
			if bad := s.Validate(encode(good)); bad != nil {
				t.Errorf("%s refuses %q: %v", pattern, good, bad)
			}
		}
		for _, bad := range values.bad {
			if s.Validate(encode(bad)) == nil {
				t.Errorf("%s takes %q", pattern, bad)
			}
		}
	}
}
