package strictjson_test

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/parley-server/parley/internal/strictjson"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestCanonicalHasOneSpelling(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		` { "b" : 1 , "a" : [ true , null ] } `:                      `{"b":1,"a":[true,null]}`,
		`{"\u0061":"\u0062\/\u003c\"\n"}`:                            `{"a":"b/<\"\n"}`,
		`{"n":12345678901234567890,"f":1e999,"z":-0.0,"e":1E2}`:      `{"n":12345678901234567890,"f":1e999,"z":-0.0,"e":1E2}`,
		`{"nul":"a\u0000b","half":"\ud83dx","whole":"\ud83d\ude00"}`: "{\"nul\":\"a\uFFFDb\",\"half\":\"\uFFFDx\",\"whole\":\"😀\"}",
		"{\"raw\":\"a\xffb\"}":                                       "{\"raw\":\"a\uFFFDb\"}",
		`"text"`:                                                     `"text"`,
	} {
		got, err := strictjson.Canonical([]byte(text))
		if err != nil || string(got) != want {
			t.Errorf("Canonical(%s) = %s, %v; want %s", text, got, err, want)
		}
	}
}

func TestAmbiguousTextsAreRefused(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]strictjson.Error{
		`{"a":1,"a":2}`:           {Problem: strictjson.Duplicate, Pointer: "/a", Name: "a"},
		`{"a":1,"\u0061":2}`:      {Problem: strictjson.Duplicate, Pointer: "/a", Name: "a"},
		`{"x":[{"a":1,"a":1}]}`:   {Problem: strictjson.Duplicate, Pointer: "/x/0/a", Name: "a"},
		`{"\u0000":1,"\ufffd":2}`: {Problem: strictjson.Duplicate, Pointer: "/\uFFFD", Name: "\uFFFD"},
		`{"\ud800":1,"\udfff":2}`: {Problem: strictjson.Duplicate, Pointer: "/\uFFFD", Name: "\uFFFD"},
		``:                        {Problem: strictjson.Syntax},
		` `:                       {Problem: strictjson.Syntax},
		`{"a":1`:                  {Problem: strictjson.Syntax},
		`{"a":1}{"b":2}`:          {Problem: strictjson.Syntax},
		`{"a":1}x`:                {Problem: strictjson.Syntax},
		`{'a':1}`:                 {Problem: strictjson.Syntax},
		strings.Repeat("[", 65) + strings.Repeat("]", 65): {Problem: strictjson.Deep},
		strings.Repeat(`{"a":`, 100_000):                  {Problem: strictjson.Deep},
	} {
		_, err := strictjson.Canonical([]byte(text))
		got, ok := errors.AsType[*strictjson.Error](err)
		if !ok || got.Problem != want.Problem || want.Problem == strictjson.Duplicate && (got.Pointer != want.Pointer || got.Name != want.Name) {
			t.Errorf("Canonical(%.60s) = %+v, want %+v", text, got, want)
		}
		var into any
		if err := strictjson.Unmarshal([]byte(text), &into); err == nil {
			t.Errorf("Unmarshal(%.60s) accepts it as %v", text, into)
		}
	}
	deepest := strings.Repeat("[", 64) + strings.Repeat("]", 64)
	if _, err := strictjson.Canonical([]byte(deepest)); err != nil {
		t.Errorf("64 levels: %v", err)
	}
}

func TestNamesAreMatchedExactly(t *testing.T) {
	t.Parallel()
	type call struct {
		Command string            `json:"command"`
		Seconds int               `json:"timeout_seconds"`
		Headers map[string]string `json:"headers"`
		Content *string           `json:"content"`
		Body    json.RawMessage   `json:"body"`
	}
	const safe = `{"command":"echo SAFE","COMMAND":"echo EVIL","cOmmand":"echo EVIL"}`
	var in call
	if err := strictjson.Unmarshal([]byte(safe), &in); err != nil || in.Command != "echo SAFE" {
		t.Errorf("%q, %v", in.Command, err)
	}
	for text, want := range map[string]strictjson.Error{
		safe:             {Problem: strictjson.Unknown, Pointer: "/COMMAND", Name: "COMMAND"},
		`{"command":7}`:  {Problem: strictjson.Type, Pointer: "/command", Name: "command", Want: "string", Got: "number"},
		`{"content":[]}`: {Problem: strictjson.Type, Pointer: "/content", Name: "content", Want: "string", Got: "array"},
		`{"timeout_seconds":1.5}`: {Problem: strictjson.Type, Pointer: "/timeout_seconds", Name: "timeout_seconds", Want: "whole number",
			Got: "number"},
		`{"timeout_seconds":"3"}`: {Problem: strictjson.Type, Pointer: "/timeout_seconds", Name: "timeout_seconds", Want: "whole number",
			Got: "string"},
		`{"timeout_seconds":1e40}`: {Problem: strictjson.Type, Pointer: "/timeout_seconds", Name: "timeout_seconds", Want: "whole number",
			Got: "number"},
		`{"headers":{"A":1}}`: {Problem: strictjson.Type, Pointer: "/headers/A", Name: "A", Want: "string", Got: "number"},
		`[]`:                  {Problem: strictjson.Type, Want: "object", Got: "array"},
	} {
		err := strictjson.UnmarshalKnown([]byte(text), new(call))
		got, ok := errors.AsType[*strictjson.Error](err)
		if !ok || got.Problem != want.Problem || got.Pointer != want.Pointer || got.Name != want.Name ||
			want.Problem == strictjson.Type && (got.Want != want.Want || got.Got != want.Got) {
			t.Errorf("%s: %+v, want %+v", text, got, want)
		}
	}
	in = call{}
	if err := strictjson.UnmarshalKnown([]byte(`{"command":null,"content":null,"body":{"a":[1, 2]}}`), &in); err != nil ||
		in.Content != nil || string(in.Body) != `{"a":[1, 2]}` {
		t.Errorf("%+v, %v", in, err)
	}
}

// TestCanonicalKeepsTheMeaning checks that a canonical text is its own canonical form, and has the
// meaning of the original for every parser.
func TestCanonicalKeepsTheMeaning(t *testing.T) {
	t.Parallel()
	names := rapid.StringOf(rapid.SampledFrom([]rune("aA\x00é\"\\/\u2028😀")))
	var value func(depth int) *rapid.Generator[any]
	value = func(depth int) *rapid.Generator[any] {
		kinds := []*rapid.Generator[any]{rapid.Just[any](nil), rapid.Map(names, func(s string) any { return s }),
			rapid.Map(rapid.Float64(), func(f float64) any { return f }), rapid.Map(rapid.Bool(), func(b bool) any { return b })}
		if depth > 0 {
			kinds = append(kinds, rapid.Map(rapid.SliceOfN(value(depth-1), 0, 3), func(l []any) any { return l }),
				rapid.Map(rapid.MapOfN(names, value(depth-1), 0, 3), func(m map[string]any) any { return m }))
		}
		return rapid.OneOf(kinds...)
	}
	rapid.Check(t, func(t *rapid.T) {
		v := value(3).Draw(t, "value")
		text, err := json.MarshalIndent(v, "", " ")
		if err != nil {
			t.Fatal(err)
		}
		once, err := strictjson.Canonical(text)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		twice, err := strictjson.Canonical(once)
		if err != nil || string(twice) != string(once) {
			t.Fatalf("%s becomes %s (%v)", once, twice, err)
		}
		var got, want any
		plain := strings.ReplaceAll(string(text), `\u0000`, `\ufffd`)
		if json.Unmarshal(once, &got) != nil || json.Unmarshal([]byte(plain), &want) != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("%s becomes %s", text, once)
		}
	})
}

func FuzzCanonical(f *testing.F) {
	for _, seed := range []string{`{"a":1,"A":2}`, `{"a":"\ud800\u0000"}`, "[1e999]", "\"\xff\"", `{"a":1}{}`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		once, err := strictjson.Canonical([]byte(text))
		if err != nil {
			return
		}
		if !json.Valid(once) {
			t.Fatalf("%q becomes %q", text, once)
		}
		twice, err := strictjson.Canonical(once)
		if err != nil || string(twice) != string(once) {
			t.Fatalf("%q becomes %q, then %q (%v)", text, once, twice, err)
		}
	})
}

// TestStringsThatAreNotText checks strings that PostgreSQL cannot store.
func TestStringsThatAreNotText(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]bool{
		`""`: false, `"a"`: false, `"\\u0000"`: false, `"\\\u0000"`: true, `"\u0000"`: true, `"\u00e9"`: false, `"\n\t\""`: false,
		`"\ud83d\ude00"`: false, `"\uD83D\uDE00"`: false, `"\ud83d"`: true, `"\ud83dx"`: true, `"\ud83d\n"`: true, `"\ud83d\u0041"`: true,
		`"\ude00"`: true, `"\ud83d\ud83d\ude00"`: true, `"\ud83d\ude00\ud83d"`: true, `"\ufffd"`: false, `"\ud83d\\ude00"`: true,
	} {
		if got := strictjson.IsText([]byte(raw)); got == want {
			t.Errorf("%s: %v", raw, got)
		}
	}
}
