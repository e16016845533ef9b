package text_test

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/parley-server/parley/internal/text"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestInvisibleCharacters(t *testing.T) {
	t.Parallel()
	for r, want := range map[rune]bool{
		'a': false, ' ': false, 'é': false, '日': false, '😀': false, '\u0301': false, '\ufffd': false,
		'\n': true, '\t': true, 0: true, '\x1b': true, '\u0085': true, '\u00a0': true, '\u00ad': true, '\u034f': true, '\u115f': true,
		'\u1680': true, '\u180e': true, '\u200b': true, '\u200d': true, '\u202e': true, '\u2028': true, '\u2064': true, '\u2066': true,
		'\u2800': true, '\u3000': true, '\u3164': true, '\ufe0f': true, '\ufeff': true, '\uffa0': true, '\ufff9': true,
		'\U00013441': true, '\U00016fe4': true, '\U0001d159': true, '\U0001d173': true, '\U000e0041': true, '\U000e0100': true,
		'\U000f0000': true,
	} {
		if got := text.IsInvisible(r); got != want {
			t.Errorf("Invisible(%U) = %v", r, got)
		}
		if text.IsTerminalControl(r) && !text.IsInvisible(r) {
			t.Errorf("%U controls a terminal but counts as visible", r)
		}
	}
}

// TestEscapeLosesNothing checks that an escaped JSON string has the same value and contains no
// invisible character.
func TestEscapeLosesNothing(t *testing.T) {
	t.Parallel()
	any := rapid.OneOf(rapid.String(), rapid.StringOf(rapid.RuneFrom([]rune{'\\', '"'}, unicode.Cf, unicode.Zs, unicode.Mn, unicode.Lo)))
	rapid.Check(t, func(t *rapid.T) {
		s := any.Draw(t, "text")
		var literal strings.Builder
		enc := json.NewEncoder(&literal)
		enc.SetEscapeHTML(false)
		if err := enc.Encode(s); err != nil {
			t.Fatal(err)
		}
		escaped := text.Escape(strings.TrimSuffix(literal.String(), "\n"))
		for _, r := range escaped {
			if text.IsInvisible(r) {
				t.Fatalf("%q still has %U", escaped, r)
			}
		}
		var back string
		if json.Unmarshal([]byte(escaped), &back) != nil || back != strings.ToValidUTF8(s, "\ufffd") {
			t.Fatalf("%q is written as %q, which is %q", s, escaped, back)
		}
	})
}

func TestTruncateCutsBetweenCharacters(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		in   string
		n    int
		want string
	}{
		{"", 3, ""}, {"abc", 3, "abc"}, {"abcd", 3, "abc…"}, {"äöüß", 3, "äöü…"}, {"äöü", 3, "äöü"}, {"👍👍", 1, "👍…"},
		{"a\xffbc", 2, "a\ufffd…"}, {"abc", 0, "…"}, {"abc", -1, "…"}, {"", 0, ""}, {"a\xff", 2, "a\ufffd"},
	} {
		if got := text.Truncate(c.in, c.n); got != c.want {
			t.Errorf("Truncate(%q, %d) is %q, want %q", c.in, c.n, got, c.want)
		}
	}
	if got := text.Prefix("äöüß", 2); got != "äö" {
		t.Errorf("Prefix is %q", got)
	}
}

func TestMaskedTextIsVisibleAndStorable(t *testing.T) {
	t.Parallel()
	if got, want := text.Mask("a\u200bb\xff\xfec\x00 é"), "a\ufffdb\ufffdc\ufffd é"; got != want {
		t.Errorf("Mask is %q, want %q", got, want)
	}
	rapid.Check(t, func(t *rapid.T) {
		masked := text.Mask(string(rapid.SliceOf(rapid.Byte()).Draw(t, "bytes")))
		if !text.IsStorable(masked) || strings.ContainsFunc(masked, text.IsInvisible) {
			t.Fatalf("%q", masked)
		}
	})
}

func TestPredicatesOfTexts(t *testing.T) {
	t.Parallel()
	for s, want := range map[string]struct{ printable, storable bool }{
		"": {true, true}, " ~": {true, true}, "é": {false, true}, "a\nb": {false, true}, "\x7f": {false, true},
		"a\x00": {false, false}, "\xff": {false, false},
	} {
		if text.IsPrintable(s) != want.printable || text.IsStorable(s) != want.storable {
			t.Errorf("%q is printable: %v, storable: %v", s, text.IsPrintable(s), text.IsStorable(s))
		}
	}
	if got := text.PointerToken("a/b~c"); got != "a~1b~0c" {
		t.Errorf("PointerToken is %q", got)
	}
}
