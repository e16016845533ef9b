package cli

import (
	"testing"
	"time"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/parley-server/parley/internal/text"
)

func TestAModelCannotSteerTheTerminal(t *testing.T) {
	t.Parallel()
	for s, want := range map[string]string{
		"plain\ttext\nünï 🙂": "plain\ttext\nünï 🙂",
		"\x1b]0;title\x07":   `\u001b]0;title\u0007`,
		"a\rb":               `a\u000db`,
		"\u202eevil\u009b":   `\u202eevil\u009b`,
	} {
		if got := escapeControls(s); got != want {
			t.Errorf("visible(%q) = %q, want %q", s, got, want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.OneOf(rapid.String(), rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) string { return string(b) })).Draw(t, "s")
		for _, r := range escapeControls(s) {
			if text.IsTerminalControl(r) && r != '\n' && r != '\t' {
				t.Fatalf("%q shows %q", s, r)
			}
		}
		for _, r := range plainLine(s) {
			if text.IsTerminalControl(r) {
				t.Fatalf("%q on a line shows %q", s, r)
			}
		}
		if !utf8.ValidString(escapeControls(s)) {
			t.Fatalf("%q is shown broken", s)
		}
	})
}

func TestDurationsHaveDays(t *testing.T) {
	t.Parallel()
	for s, want := range map[string]time.Duration{"90d": 90 * 24 * time.Hour, "12h": 12 * time.Hour, "0s": 0} {
		if d, err := parseDuration(s); err != nil || d == nil || *d != want {
			t.Errorf("%s: %v, %v", s, d, err)
		}
	}
	if d, err := parseDuration("never"); d != nil || err != nil {
		t.Errorf("never: %v, %v", d, err)
	}
	for _, s := range []string{"", "d", "-1d", "-1h", "9000000000d", "90", "1.5d"} {
		if d, err := parseDuration(s); err == nil {
			t.Errorf("%q is %v", s, d)
		}
	}
}

func TestKeysAreNamedInAnyForm(t *testing.T) {
	t.Parallel()
	for _, s := range []string{"7F3kQ2zB", "prl_7F3kQ2zB…9xQa", "prl_7F3kQ2zB", "prl_7F3kQ2zBabcdefghijabcdefghijabcdefghijab123456"} {
		if got := keyID(s); got != "7F3kQ2zB" {
			t.Errorf("%s: %s", s, got)
		}
	}
}
