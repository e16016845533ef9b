package redact_test

import (
	"encoding/base64"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/parley-server/parley/internal/redact"
)

// FuzzRedact searches for a form of a value that stays in a text, or for a result that depends on
// the chunks of the text.
func FuzzRedact(f *testing.F) {
	for i, v := range values {
		f.Add(v, "before", "after", uint(i), uint8(i))
	}
	f.Fuzz(func(t *testing.T, value, before, after string, which uint, size uint8) {
		odd := func(c rune) bool { return unicode.IsControl(c) || strings.ContainsRune("[]:", c) } // marks contain these
		if len(value) < 8 || len(value) > 300 || !utf8.ValidString(value) || strings.ContainsFunc(value, odd) ||
			strings.ContainsAny(before+after, `\%&[]`) {
			return
		}
		all := spellings(value)
		names := make([]string, 0, len(all))
		for name := range all {
			names = append(names, name)
		}
		slices.Sort(names)
		name := names[which%uint(len(names))]
		if strings.HasSuffix(name, "twice") && strings.ContainsAny(value, `%\&`) {
			return
		}
		r := redact.New(redact.Secret{Name: "A", Value: []byte(value)})
		text := before + " " + all[name] + " " + after
		got := r.String(text)
		if streamed := stream(r, text, []int{int(size)%7 + 1, 1}); streamed != got {
			t.Fatalf("a stream of %q returns %q, want %q", text, streamed, got)
		}
		if !strings.Contains(got, "[secret:A]") {
			t.Fatalf("%s of %q stays in %q", name, value, got)
		}
		for name, form := range all {
			if strings.Contains(got, form) {
				t.Fatalf("%s of %q is in %q", name, value, got)
			}
		}
		for n := range 3 { // without the ends, which overlap other bytes
			whole := base64.RawStdEncoding.EncodeToString([]byte("abc"[:n] + value))
			core := whole[2*n : len(whole)-1]
			if len(core) >= 10 && strings.Contains(strings.NewReplacer("\r", "", "\n", "", "-", "+", "_", "/").Replace(got), core) {
				t.Fatalf("base64 +%d of %q is in %q", n, value, got)
			}
		}
	})
}
