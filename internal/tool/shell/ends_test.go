package shell

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestBothEndsAreKept compares with what a slice of everything would have.
func TestBothEndsAreKept(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var e ends
		var all []byte
		for i, n := range rapid.SliceOfN(rapid.IntRange(0, 50<<10), 0, 8).Draw(t, "writes") {
			p := bytes.Repeat([]byte{byte('a' + i)}, n)
			for j := range p {
				if j%97 == 0 {
					p[j] = byte('0' + j%10)
				}
			}
			if wrote, err := e.Write(p); wrote != n || err != nil {
				t.Fatalf("wrote %d of %d: %v", wrote, n, err)
			}
			all = append(all, p...)
		}
		want := string(all)
		if lost := len(all) - keepHead - keepTail; lost > 0 {
			want = string(all[:keepHead]) + fmt.Sprintf("\n[%d bytes are left out here]\n", lost) + string(all[len(all)-keepTail:])
		}
		if got := e.String(); got != want {
			t.Fatalf("of %d bytes there are %d, of %d expected", len(all), len(got), len(want))
		}
	})
}

func TestCommandsThatCannotBeRead(t *testing.T) {
	t.Parallel()
	for input, want := range map[string]string{
		`[]`:                                     "JSON object",
		`{}`:                                     `"command" is required`,
		`{"command":" "}`:                        `"command" is required`,
		`{"command":7}`:                          `"command" must be a string`,
		`{"command":"a\u0000b"}`:                 "NUL",
		`{"command":"ls","timeout_seconds":601}`: "1 to 600",
		`{"command":"ls","timeout_seconds":-1}`:  "1 to 600",
		`{"command":"ls","timeout_seconds":"1 h"}`:                "whole number",
		`{"command":"` + strings.Repeat("x", maxCommand+1) + `"}`: "too long",
	} {
		if _, wrong := parse([]byte(input)); !strings.Contains(wrong, want) {
			t.Errorf("%.60s: %q, want %q", input, wrong, want)
		}
	}
}
