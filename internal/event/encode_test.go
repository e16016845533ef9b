package event_test

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/parley-server/parley/internal/event"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// hostile draws text with everything that JSON, PostgreSQL or a frame could fail on.
func hostile() *rapid.Generator[string] {
	pieces := []string{"a", "ß", "👩‍🚀", "\x00", "\n", "\r", "\t", "\x1b", `"`, `\`, `\u0000`, `\ud800`, "\u0085", "\u2028", "\u2029",
		"\xff", "\xed\xa0\x80", "</inputs>", "data: x"}
	return rapid.Custom(func(t *rapid.T) string {
		return strings.Join(rapid.SliceOfN(rapid.SampledFrom(pieces), 0, 12).Draw(t, "pieces"), "")
	})
}

// storable checks the requirements of a json column and of a line of a frame.
func storable(t *rapid.T, data []byte) {
	switch {
	case !json.Valid(data):
		t.Fatalf("not JSON: %s", data)
	case bytes.ContainsAny(data, "\n\r\x00\u0085\u2028\u2029"):
		t.Fatalf("more than one line, or a NUL: %q", data)
	case !utf8.Valid(data):
		t.Fatalf("not UTF-8: %q", data)
	}
	// PostgreSQL rejects an escaped NUL or half of a surrogate pair.
	rest := bytes.ReplaceAll(data, []byte(`\\`), nil)
	if bytes.Contains(rest, []byte(`\u0000`)) || bytes.Contains(rest, []byte(`\ud800`)) {
		t.Fatalf("PostgreSQL would refuse %s", data)
	}
}

func TestTextIsStorableAndComesBack(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := hostile().Draw(t, "text")
		data, err := event.Encode(event.Text{Text: s})
		if err != nil {
			t.Fatal(err)
		}
		storable(t, data)
		body, err := event.Decode(event.KindText, data)
		if err != nil || utf8.ValidString(s) && body.(event.Text).Text != event.Plain(s) {
			t.Fatalf("%q was decoded as %+v (%v)", s, body, err)
		}
	})
}

func TestMergedTextIsTheTextOfBoth(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		a, b := event.Plain(hostile().Draw(t, "a")), event.Plain(hostile().Draw(t, "b"))
		encode := func(s string) []byte {
			data, err := event.Encode(event.Text{Text: s})
			if err != nil {
				t.Fatal(err)
			}
			return data
		}
		if got, want := event.MergeText(encode(a), encode(b)), encode(a+b); !bytes.Equal(got, want) {
			t.Fatalf("merged %s, want %s", got, want)
		}
	})
}

func TestEveryBodyIsStorable(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := hostile().Draw(t, "text")
		raw, _ := json.Marshal(map[string]string{"x": s})
		raw = append(raw[:len(raw)-1], `,"y":"\u0000\ud800 \ud83d\ude00`+"\u0085\u2028"+`"}`...)
		for _, body := range []event.Body{
			event.Message{Content: s, Label: s},
			event.ToolUse{Tool: s, Summary: s, ToolUseID: s},
			event.ToolResult{Tool: s, Output: s},
			event.Reply{Text: s, Calls: []event.ToolCall{{ID: s, Tool: s, Input: raw}}},
			event.Structured{Result: raw},
			event.Error{Code: event.ModelError, Message: s},
		} {
			data, err := event.Encode(body)
			if err != nil {
				t.Fatalf("%T: %v", body, err)
			}
			storable(t, data)
			if versioned := bytes.HasPrefix(data, []byte(`{"v":1,`)); versioned != body.Kind().Public() {
				t.Fatalf("%T is written as %s", body, data)
			}
			again, err := event.Decode(body.Kind(), data)
			if err != nil {
				t.Fatalf("%T cannot be decoded: %v", body, err)
			}
			second, _ := event.Encode(again)
			if twice, _ := event.Decode(body.Kind(), second); !reflect.DeepEqual(twice, again) {
				t.Fatalf("%T is %+v first and %+v the second time", body, again, twice)
			}
		}
	})
}

func TestOutputIsCutAtCharacters(t *testing.T) {
	t.Parallel()
	for _, c := range []string{"x", "é", "👩‍🚀", "é"} {
		for _, n := range []int{event.OutputLimit - 1, event.OutputLimit, event.OutputLimit + 1} {
			s := strings.Repeat(c, n)
			runes := utf8.RuneCountInString(s)
			cut, truncated := event.CutOutput(s)
			if got := utf8.RuneCountInString(cut); got != min(runes, event.OutputLimit) || truncated != (runes > event.OutputLimit) {
				t.Errorf("%d characters of %q: %d are left, truncated %v", runes, c, got, truncated)
			}
			if !utf8.ValidString(cut) || !strings.HasPrefix(s, cut) {
				t.Errorf("the cut of %q is not its beginning", c)
			}
		}
	}
}

// TestReferencesOfOneDocument compares names of a page with paths.
func TestReferencesOfOneDocument(t *testing.T) {
	t.Parallel()
	page := event.Reference{Path: "expenses", Source: "wiki_read"}.Document()
	for ref, same := range map[event.Reference]bool{
		{Path: "wiki/expenses.md", Source: "read"}:     true,
		{Path: "wiki/expenses.md", Source: "grep"}:     true,
		{Path: "expenses", Source: "read"}:             false,
		{Path: "expenses.md", Source: "grep"}:          false,
		{Path: "travel/expenses", Source: "wiki_read"}: false,
	} {
		if (ref.Document() == page) != same {
			t.Errorf("%+v is %s, and the page %s", ref, ref.Document(), page)
		}
	}
}
