package vault_test

import (
	"strings"
	"testing"

	"github.com/parley-server/parley/internal/store/vault"
)

func TestGuessableValues(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"4711": true, "48151623": true, "hunter2": true, "a1B2c3D4": true, "0123456789": true, "abcdefghijklm": true, "hunter2-hunter2": true,
		strings.Repeat("a", 64<<10): true, strings.Repeat("ab", 24): true,
		"abcdefghijklmn": false, "4929123456781234123": false, "sk_live_51HxQpfK2eZv": false, "correct horse battery": false,
		"9f86d081884c7d659a2feaa0c55ad015": false, "-----BEGIN KEY-----\nAb3+\n": false,
	} {
		if got := vault.NewValue([]byte(text)).IsGuessable(); got != want {
			t.Errorf("IsGuessable(%.30q) = %v", text, got)
		}
	}
}

// TestBoundsOfValues checks values at their length limits, and the places where their lines may
// end.
func TestBoundsOfValues(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"471": "at least 4 bytes", "4711": "", "é1": "at least 4 bytes", "éé": "", strings.Repeat("x", vault.MaxValue): "",
		strings.Repeat("x", vault.MaxValue+1): "at most 65536 bytes",
		"one\ntwo":                            "", "one\r\ntwo\r\n": "", "one\ntwo\n": "", "one\n\ntwo": "",
		"token\n": "begin or end with a blank", "\ntoken": "begin or end", "one\ntwo\n\n": "begin or end", "one\ntwo \n": "begin or end",
		" token": "begin or end", "token ": "begin or end",
		"one\rtwo": "without control characters", "one\ttwo": "without control characters", "one\x00two": "without control characters",
		"one\xfftwo": "UTF-8",
		"\n\n\n\n":   "begin or end", "    ": "begin or end",
	} {
		vs := vault.CheckValue(vault.NewValue([]byte(text)))
		if want == "" && len(vs) > 0 || want != "" && (len(vs) != 1 || !strings.Contains(vs[0].Message, want)) {
			t.Errorf("%.30q: %v, want %q", text, vs, want)
		}
	}
}
