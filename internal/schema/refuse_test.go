package schema_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/parley-server/parley/internal/schema"
	"github.com/parley-server/parley/internal/testing/slow"
	"github.com/parley-server/parley/internal/testing/wait"
)

// hostile are schemas that must be rejected, with the place and a part of the reason.
var hostile = []struct{ raw, path, reason string }{
	// References that never end, or leave the document.
	{`{"$ref":"#"}`, "/$ref", "would never end"},
	{`{"allOf":[{"$ref":"#"}]}`, "/allOf/0/$ref", "would never end"},
	{`{"not":{"$ref":"#"}}`, "/not/$ref", "would never end"},
	{`{"if":{"$ref":"#"}}`, "/if/$ref", "would never end"},
	{`{"dependentSchemas":{"a":{"$ref":"#"}}}`, "/dependentSchemas/a/$ref", "would never end"},
	{`{"$defs":{"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"}},"$ref":"#/$defs/a"}`, "/$defs/b/$ref", "would never end"},
	{
		`{"$defs":{"a":{"anyOf":[{"type":"null"},{"$ref":"#/$defs/b"}]},"b":{"oneOf":[{"$ref":"#/$defs/a"}]}},` +
			`"properties":{"x":{"$ref":"#/$defs/a"}}}`, "/$defs/b/oneOf/0/$ref", "would never end"},
	{`{"$ref":"http://127.0.0.1:1/schema.json"}`, "/$ref", "Nothing is fetched"},
	{`{"$ref":"//evil.example/s"}`, "/$ref", "Nothing is fetched"},
	{`{"$ref":"file:///etc/passwd"}`, "/$ref", "Nothing is fetched"},
	{`{"properties":{"a":{"items":{"$ref":"other.json#/x"}}}}`, "/properties/a/items/$ref", "Nothing is fetched"},
	{`{"$ref":""}`, "/$ref", "Nothing is fetched"},
	{`{"$ref":"#anchor"}`, "/$ref", "JSON pointer"},
	{`{"$ref":"#/%zz"}`, "/$ref", "JSON pointer"},
	{`{"$ref":7}`, "/$ref", "string"},
	{`{"$ref":"#/$defs/missing"}`, "/$ref", "No schema exists at"},
	{`{"items":{"$ref":"#/required"},"required":["a"]}`, "/items/$ref", "No schema exists at"},
	{`{"default":{"type":"string"},"items":{"$ref":"#/default"}}`, "/items/$ref", "No schema exists at"},
	// Names that refer outside the document, or outside the parsed part.
	{`{"$id":"https://tenant.example/a","type":"string"}`, "/$id", "no addresses"},
	{`{"properties":{"x":{"$id":"http://json-schema.org/draft-07/schema"}}}`, "/properties/x/$id", "no addresses"},
	{`{"$anchor":"a"}`, "/$anchor", "not accepted"},
	{`{"$dynamicRef":"#a"}`, "/$dynamicRef", "not accepted"},
	{`{"$defs":{"a":{"$dynamicAnchor":"a"}}}`, "/$defs/a/$dynamicAnchor", "not accepted"},
	{`{"$recursiveRef":"#"}`, "/$recursiveRef", "not accepted"},
	{`{"$vocabulary":{}}`, "/$vocabulary", "not accepted"},
	{`{"$schema":"https://tenant.example/meta"}`, "/$schema", "names draft-07"},
	{`{"$schema":"http://json-schema.org/draft-04/schema#"}`, "/$schema", "names draft-07"},
	{`{"items":{"$schema":"https://json-schema.org/draft/2020-12/schema"}}`, "/items/$schema", "at the top"},
	// Keywords that would be ignored silently.
	{`{"minLenght":5}`, "/minLenght", "Unknown keyword"},
	{`{"properties":{"a":{"nullable":true}}}`, "/properties/a/nullable", "null"},
	{`{"dependencies":{"a":["b"]}}`, "/dependencies", "dependentRequired"},
	{`{"unevaluatedItems":false}`, "/unevaluatedItems", "items"},
	{`{"then":{}}`, "/then", "without if"},
	{`{"minContains":1}`, "/minContains", "without contains"},
	{`{"additionalItems":false}`, "/additionalItems", "without items"},
	{`{"items":{},"additionalItems":false}`, "/additionalItems", "unless items is an array"},
	{`{"items":[{}],"prefixItems":[{}]}`, "/items", "prefixItems"},
	{`{"allOf":[{"properties":{"a":{}}}],"additionalProperties":false}`, "/additionalProperties", "unevaluatedProperties"},
	{`{"$ref":"#/$defs/a","$defs":{"a":{}},"additionalProperties":{"type":"string"}}`, "/additionalProperties", "unevaluatedProperties"},
	// Values of the wrong kind.
	{`[]`, "", "JSON object"},
	{`true`, "", "JSON object"},
	{`"x"`, "", "JSON object"},
	{`{`, "", "valid JSON"},
	{``, "", "valid JSON"},
	{`{"type":"string","type":"number"}`, "/type", "twice"},
	{`{"properties":{"a":{},"a":{"type":"string"}}}`, "/properties/a", "twice"},
	{`{"enum":[]}`, "/enum", "at least one"},
	{`{"enum":1}`, "/enum", "at least one"},
	{`{"type":"int"}`, "/type", "type is one of"},
	{`{"type":[]}`, "/type", "empty"},
	{`{"type":["string","string"]}`, "/type", "different"},
	{`{"type":null}`, "/type", "type is one of"},
	{`{"items":7}`, "/items", "A schema is"},
	{`{"items":[]}`, "/items", "at least one"},
	{`{"allOf":[]}`, "/allOf", "at least one"},
	{`{"anyOf":{}}`, "/anyOf", "at least one"},
	{`{"oneOf":[1]}`, "/oneOf/0", "A schema is"},
	{`{"properties":[]}`, "/properties", "object of schemas"},
	{`{"properties":{"a/b":null}}`, "/properties/a~1b", "A schema is"},
	{`{"required":"a"}`, "/required", "different names"},
	{`{"required":["a","a"]}`, "/required", "different names"},
	{`{"dependentRequired":{"a":[1]}}`, "/dependentRequired/a", "different names"},
	{`{"minLength":-1}`, "/minLength", "whole number"},
	{`{"maxItems":1.5}`, "/maxItems", "whole number"},
	{`{"maxItems":1e300}`, "/maxItems", "whole number"},
	{`{"maximum":"5"}`, "/maximum", "number"},
	{`{"maximum":1e999}`, "/maximum", "out of range"},
	{`{"exclusiveMinimum":true}`, "/exclusiveMinimum", "number"},
	{`{"multipleOf":0.01}`, "/multipleOf", "fraction"},
	{`{"multipleOf":0}`, "/multipleOf", "whole number"},
	{`{"uniqueItems":1}`, "/uniqueItems", "true or false"},
	{`{"format":[]}`, "/format", "string"},
	// Patterns.
	{`{"pattern":"("}`, "/pattern", "cannot be compiled"},
	{`{"pattern":"(a)\\1"}`, "/pattern", "RE2"},
	{`{"pattern":"a(?=b)"}`, "/pattern", "lookaheads only behind"},
	{`{"pattern":"^(?=a)b|c"}`, "/pattern", "alternatives"},
	{`{"pattern":"^(?=(?!a)b)c"}`, "/pattern", "RE2"},
	{`{"pattern":"a{1001}"}`, "/pattern", "cannot be compiled"},
	{`{"pattern":"(a{1000}){1000}"}`, "/pattern", "cannot be compiled"},
	{`{"pattern":"((a{10}b{10}){10}c{10}){9}"}`, "/pattern", "repeats too much"},
	{`{"pattern":"((((a?){9}b?){9}c?){9}d?){1,9}"}`, "/pattern", "cannot be compiled"},
	{`{"pattern":"` + strings.Repeat("a", 1001) + `"}`, "/pattern", "at most 1000 bytes"},
	{`{"pattern":"` + strings.Repeat("(", 1000) + `"}`, "/pattern", "cannot be compiled"},
	{`{"patternProperties":{"(?<=a)b":{}}}`, "/patternProperties", "RE2"},
	// Size, depth and cost.
	{`{"title":"` + strings.Repeat("x", 64<<10) + `"}`, "", "longer than 65536 bytes"},
	{strings.Repeat(`{"items":`, 33) + `{}` + strings.Repeat(`}`, 33), strings.Repeat("/items", 32), "too deeply"},
	{`{"examples":` + strings.Repeat(`[`, 40) + strings.Repeat(`]`, 40) + `}`, "/examples" + strings.Repeat("/0", 31), "too deeply"},
	{strings.Repeat(`[`, 20_000) + strings.Repeat(`]`, 20_000), "", "valid JSON"},
	{bomb(18), "/$defs/l12", "multiply"},
	{strings.ReplaceAll(bomb(18), "allOf", "anyOf"), "/$defs/l12", "multiply"},
}

// bomb returns a schema of a few lines that a naive engine checks 2^levels times.
func bomb(levels int) string {
	var b strings.Builder
	b.WriteString(`{"$ref":"#/$defs/l` + fmt.Sprint(levels) + `","$defs":{"l0":{"type":"string"}`)
	for i := 1; i <= levels; i++ {
		fmt.Fprintf(&b, `,"l%d":{"allOf":[{"$ref":"#/$defs/l%d"},{"$ref":"#/$defs/l%d"}]}`, i, i-1, i-1)
	}
	return b.String() + `}}`
}

// chain returns a schema reached through so many references, as is every item.
func chain(links int) string {
	var b strings.Builder
	b.WriteString(`{"$ref":"#/$defs/0","$defs":{"end":{"items":{"$ref":"#"}}`)
	for i := range links {
		next := fmt.Sprint(i + 1)
		if i == links-1 {
			next = "end"
		}
		fmt.Fprintf(&b, `,"%d":{"$ref":"#/$defs/%s"}`, i, next)
	}
	return b.String() + `}}`
}

func TestHostileSchemasAreRefusedByPlaceAndReason(t *testing.T) {
	t.Parallel()
	for _, h := range hostile {
		s, err := schema.Compile(json.RawMessage(h.raw))
		e, ok := errors.AsType[*schema.Error](err)
		if !ok || s != nil {
			t.Errorf("%.200s: not refused: %v", h.raw, err)
			continue
		}
		if e.Path != h.path || !strings.Contains(e.Reason, h.reason) || !strings.HasSuffix(e.Reason, ".") {
			t.Errorf("%.200s\nrefused at %q: %s\nwant at %q: …%s…", h.raw, e.Path, e.Reason, h.path, h.reason)
		}
	}
	for name, raw := range read(t, "refused") {
		if _, err := schema.Compile(raw); err == nil || !strings.Contains(err.Error(), "RE2") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestRefusedAndAcceptedAtTheSameTime compiles and validates everything from fifty goroutines: the
// schemas of one tenant do not affect another, and -race finds no shared state.
func TestRefusedAndAcceptedAtTheSameTime(t *testing.T) {
	t.Parallel()
	slow.Test(t, "checks many schemas")
	accepted := read(t, "accepted")
	shared := make(map[string]*schema.Schema)
	for name, raw := range accepted {
		shared[name] = compile(t, string(raw))
	}
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() {
			for _, h := range hostile {
				if _, err := schema.Compile(json.RawMessage(h.raw)); err == nil {
					t.Errorf("%.100s is accepted", h.raw)
				}
			}
			for name, raw := range accepted {
				s, err := schema.Compile(raw)
				if err != nil {
					t.Errorf("%s: %v", name, err)
					continue
				}
				sample, _ := s.Sample("some words")
				if bad := shared[name].Validate(sample); bad != nil {
					t.Errorf("%s: %s: %v", name, sample, bad)
				}
				if bad := shared[name].Validate(json.RawMessage(`"neither"`)); bad == nil && name != "pydantic-json-value.json" {
					t.Errorf("%s accepts a text", name)
				}
			}
		})
	}
	wait.Until(t, "all goroutines", all.Wait)
}

func TestNothingIsFetched(t *testing.T) {
	t.Parallel()
	var visits atomic.Int32
	srv := httptest.NewUnstartedServer(http.NotFoundHandler())
	srv.Config.ConnState = func(net.Conn, http.ConnState) { visits.Add(1) }
	srv.Start()
	defer srv.Close()
	local := filepath.Join(t.TempDir(), "schema.json")
	if err := os.WriteFile(local, []byte(`{"type":"string"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, address := range []string{srv.URL, srv.URL + "/s.json#/$defs/a", "file://" + local, local} {
		for _, form := range []string{`{"$ref":%q}`, `{"$id":%q,"$ref":"#"}`, `{"$schema":%q}`, `{"items":{"$recursiveRef":%q}}`,
			`{"$id":%q,"properties":{"a":{"$ref":"b"}}}`} {
			s, err := schema.Compile(json.RawMessage(fmt.Sprintf(form, address)))
			if err == nil {
				s.Validate(json.RawMessage(`{"a":["x"]}`))
				t.Errorf(form+" is accepted", address)
			}
		}
	}
	if n := visits.Load(); n > 0 {
		t.Errorf("%d connections", n)
	}
}

// TestCheckingIsBoundedByItsSteps uses values that multiply the work of schemas which are harmless
// by themselves. The bound is in steps, so that the machine's speed does not matter.
func TestCheckingIsBoundedByItsSteps(t *testing.T) {
	t.Parallel()
	slow.Test(t, "checks many schemas")
	nest := func(n int) string { return strings.Repeat(`{"a":`, n) + `1` + strings.Repeat(`}`, n) }
	list := func(item string, n int) string { return `[` + strings.Repeat(item+",", n-1) + item + `]` }
	names := make([]string, 3000)
	for i := range names {
		names[i] = fmt.Sprintf(`"n%d"`, i)
	}
	for what, c := range map[string]struct{ raw, value string }{
		"recursion that doubles": {
			`{"anyOf":[{"properties":{"a":{"$ref":"#"}},"required":["b"]},{"properties":{"a":{"$ref":"#"}},"required":["c"]}]}`, nest(150)},
		"a bomb in every item":       {`{"items":` + strings.Replace(bomb(11), "#/$defs", "#/items/$defs", -1) + `}`, list(`"x"`, 10_000)},
		"a long enum for every item": {`{"items":{"enum":[` + strings.Join(names, ",") + `]}}`, list(`"n2999"`, 50_000)},
		"long required names":        {`{"items":{"not":{"required":[` + strings.Join(names, ",") + `]}}}`, list(`{}`, 100_000)},
		"a slow pattern":             {`{"pattern":"^(a?b?c?d?e?f?){100}$"}`, `"` + strings.Repeat("abcdefx", 100_000) + `"`},
		"a pattern for many names": {`{"patternProperties":{"(x+x+x+x+)+y":true,"(x+x+)+z":true},"additionalProperties":{"$ref":"#"}}`,
			`{"` + strings.Repeat("x", 900_000) + `":1}`},
		"unique in unique": {`{"uniqueItems":true,"items":{"$ref":"#"}}`,
			strings.Repeat("[", 190) + list(`"`+strings.Repeat("u", 100)+`"`, 5000) + strings.Repeat("]", 190)},
		"alternatives with names": {`{"items":{"oneOf":[` + strings.Repeat(`{"$ref":"#/$defs/n"},`,
			500) + `true]},"$defs":{"n":{"required":["q"],"properties":{` + strings.Join(names, ":true,") + `:true}}}}`, list(`{}`, 10_000)},
		"deep in the schema and deep": {chain(1000), strings.Repeat("[", 150) + strings.Repeat("]", 150)},
		"lengths of a long text": {`{"allOf":[` + strings.Repeat(`{"minLength":1},`, 3000) + `true]}`,
			`"` + strings.Repeat("x", 1_000_000) + `"`},
	} {
		s := compile(t, c.raw)
		if bad := s.Validate(json.RawMessage(c.value)); len(bad) != 1 || !strings.Contains(bad[0].Message, "too many steps") {
			t.Errorf("%s: %d violations, %.200s", what, len(bad), fmt.Sprint(bad))
		}
	}
	s := compile(t, `{"items":{"$ref":"#"}}`)
	for what, value := range map[string]string{
		"too deep": strings.Repeat("[", 201) + strings.Repeat("]", 201),
		"too long": `"` + strings.Repeat("x", 1<<20) + `"`,
	} {
		if bad := s.Validate(json.RawMessage(value)); len(bad) != 1 {
			t.Errorf("%s: %v", what, bad)
		}
	}
	if bad := s.Validate(json.RawMessage(strings.Repeat("[", 200) + strings.Repeat("]", 200))); bad != nil {
		t.Errorf("the greatest allowed depth: %v", bad)
	}
}
