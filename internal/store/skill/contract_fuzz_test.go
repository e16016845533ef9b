package skill_test

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/store/skill"
)

// FuzzContract checks any input against any contract. A rejection lists its violations within
// limits; an accepted input makes a prompt whose inputs the contract accepts again.
func FuzzContract(f *testing.F) {
	for _, input := range []string{
		`{}`, `{"text":"a","day":"2026-10-01","count":3.0,"rate":1e9,"dry":true,"team":"sales"}`, `{"__proto__":{"a":1},"constructor":null}`,
		`{"lines":[{"sku":"a"},{"sku":1}],"ship":{"to":"</inputs>"},"extra":{"a":[1,2,{}]}}`, `{"text":"\u0000\ud800<>&\u2028"}`,
		`{"a/b~":1e999999999}`,
		`{"words":["]]>","~~~","\n\nHuman:"]}`, `{"count":-0.0e-5,"a":1,"a":2}`, `null`, `[]`, "{\"text\":\"\xff\"}",
	} {
		f.Add(everyType, input)
	}
	f.Add(
		"    a: {type: object, default: {b: [c, 1.50]}, properties: {b: {type: array, items: {type: object, properties: {c: {type: "+
			"enum, values: [d], default: d}}}}}}\n", `{"a":{"b":[{}]}}`)
	f.Add("    a: &x {type: string}\n    b: *x\n    <<: *x\n", `{"a":"x"}`)
	f.Add("    a: {type: array, items: {type: integer}, default: [1, 0x10, .inf, ~, 2026-10-01]}\n", `{"a":[1e-5]}`)
	f.Add("    \"a\\0\": {type: string, description: \"\\x1b\"}\n", `{"a\u0000":1}`)
	f.Fuzz(func(t *testing.T, contract, input string) {
		document := skillOf(contract)
		k, problems := skill.Parse(document)
		for _, p := range problems {
			if p.Line < 1 || p.Line > 1+strings.Count(document, "\n") || p.Message == "" {
				t.Fatalf("%+v", p)
			}
		}
		var given map[string]json.RawMessage
		if len(problems) > 0 || json.Unmarshal([]byte(input), &given) != nil {
			return
		}
		if open := (skill.Skill{Body: k.Body}); utf8.ValidString(input) && open.Check(given) == nil {
			for name, value := range inputs(t, prompted(t, open, given)) {
				if diff := cmp.Diff(meaning(t, given[name]), meaning(t, value)); diff != "" {
					t.Fatalf("%s became %s:\n%s", given[name], value, diff)
				}
			}
		}
		if label := k.Label(given); strings.ContainsAny(label, "\n\r\x00\x1b") {
			t.Fatalf("label %q", label)
		}
		if err := k.Check(given); err != nil {
			f := fault.From(err)
			if f == nil || f.Code != fault.InvalidSkillInput || len(f.Detail.Violations) > 100 {
				t.Fatalf("%v", err)
			}
			for _, v := range f.Detail.Violations {
				if !strings.HasPrefix(v.Param, "/input") || v.Rule == "" || v.Message == "" {
					t.Fatalf("%+v", v)
				}
			}
			if _, err := k.Prompt(given); err != nil {
				t.Fatalf("%s is JSON: %v", input, err)
			}
			return
		}
		filled := inputs(t, prompted(t, k, given))
		if err := k.Check(filled); err != nil && len(input)+len(contract) < skill.MaxInput/10 {
			t.Fatalf("the contract accepts %s and not %s: %v", input, filled, err)
		}
		if again := prompted(t, k, filled); again != prompted(t, k, given) {
			t.Fatalf("a filled input is filled: %s", again)
		}
	})
}

func meaning(t *testing.T, raw json.RawMessage) (v any) {
	t.Helper()
	dec := json.NewDecoder(strings.NewReader(string(raw)))
	dec.UseNumber()
	if err := dec.Decode(&v); err != nil {
		t.Fatalf("%s: %v", raw, err)
	}
	return v
}
