package model_test

import (
	"encoding/json"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/parley-server/parley/internal/model"
)

func TestInputKeepsObjects(t *testing.T) {
	t.Parallel()
	for written, want := range map[string]string{
		"":                `{}`,
		" \n":             `{}`,
		"null":            `{}`,
		`{}`:              `{}`,
		` {"a": [1, 2]} `: `{"a":[1,2]}`,
		`{"\u0063ommand":"\u0065cho\u0000","x":"\ud800\/"}`: "{\"command\":\"echo\uFFFD\",\"x\":\"\uFFFD/\"}",
		`{"big":12345678901234567890}`:                      `{"big":12345678901234567890}`,
	} {
		if got := string(model.Input(written)); got != want {
			t.Errorf("Input(%q) = %s, want %s", written, got, want)
		}
	}
}

func TestInputIsAlwaysAnObject(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		written := rapid.OneOf(
			rapid.String(),
			rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) string { return string(b) }),
			rapid.SampledFrom([]string{
				`{"a":1`, `{"a":1,"a":2}`, `{"a":{"b":1,"\u0062":2}}`, strings.Repeat(`{"a":`, 65) + "1" + strings.Repeat("}", 65),
				`{"a":1}}`, `[1]`, `"text"`, `{"a":1}{"b":2}`, `{'a':1}`, "{\"a\":\"\xff\"}", "```json\n{}\n```",
				strings.Repeat("[", 100_000), strings.Repeat(`{"a":`, 20_000),
			}),
		).Draw(t, "written")
		input := model.Input(written)
		var object map[string]any
		if err := json.Unmarshal(input, &object); err != nil || object == nil {
			t.Fatalf("Input(%q) = %s: %v", written, input, err)
		}
		if _, bad := model.Malformed(input); !bad && !json.Valid([]byte(strings.TrimSpace(written))) &&
			strings.HasPrefix(strings.TrimSpace(written), "{") {
			t.Fatalf("Malformed(%s) = %t for %q", input, bad, written)
		}
	})
}

// Two parsers could read such texts differently, so no tool gets them.
func TestAmbiguousInputIsMalformed(t *testing.T) {
	t.Parallel()
	for _, written := range []string{`{"command":"echo SAFE","command":"echo EVIL"}`, `{"command":"a","\u0063ommand":"b"}`,
		`{"a":{"b":1,"b":2}}`, strings.Repeat(`{"a":`, 65) + "1" + strings.Repeat("}", 65)} {
		if got, ok := model.Malformed(model.Input(written)); !ok || got != written {
			t.Errorf("Input(%s) = %s", written, model.Input(written))
		}
	}
}

func TestMalformedReturnsWhatTheModelWrote(t *testing.T) {
	t.Parallel()
	written, ok := model.Malformed(model.Input(`{"path": "a`))
	if !ok || written != `{"path": "a` {
		t.Errorf("Malformed = %q, %t", written, ok)
	}
	for _, input := range []string{`{}`, `{"a":1}`, `{"_malformed":1}`, `{"_malformed":"x","b":2}`, `{"a":"_malformed"}`} {
		if _, ok := model.Malformed(json.RawMessage(input)); ok {
			t.Errorf("Malformed(%s) = true", input)
		}
	}
}
