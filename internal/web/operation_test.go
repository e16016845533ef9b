package web

import (
	"encoding/json"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestCallsAreShownInFull renders inputs of any text. All of it is there, a value never begins in the
// first column, and nothing invisible is left.
func TestCallsAreShownInFull(t *testing.T) {
	t.Parallel()
	texts := rapid.StringOf(rapid.SampledFrom([]rune("ab: \n\t\"\\{}@/\u202e\u200b日")))
	rapid.Check(t, func(t *rapid.T) {
		value := texts.Draw(t, "value")
		raw, err := json.Marshal(map[string]string{"name": value})
		if err != nil {
			t.Fatal(err)
		}
		lines, warnings := renderCall("touch", raw)
		var shown strings.Builder
		for i, line := range lines {
			text := flat(line)
			if i == 0 && !strings.HasPrefix(text, "name: ") || i > 0 && !strings.HasPrefix(text, "  ") {
				t.Fatalf("line %d of %q is %q", i, value, text)
			}
			shown.WriteString(strings.TrimPrefix(text, "  ") + "\n")
		}
		if strings.ContainsAny(shown.String(), "\u202e\u200b\t") {
			t.Fatalf("%q hides a character", shown.String())
		}
		if hides := strings.ContainsAny(value, "\u202e\u200b"); hides && len(warnings) == 0 {
			t.Fatalf("%q has no warning", value)
		}
	})
}

// TestHostsAreMarked finds where an address really leads.
func TestHostsAreMarked(t *testing.T) {
	t.Parallel()
	for input, want := range map[string]string{
		`{"command":"curl https://api.example/x?u=http://two.example"}`: "api.example two.example",
		`{"url":"https://good.example@evil.example/"}`:                  "evil.example",
		`{"url":"https://evil.example\\@good.example/"}`:                "evil.example",
		`{"url":"HTTPS://a.example:8443#@b.example"}`:                   "a.example:8443",
		`{"text":"no address"}`:                                         "",
	} {
		lines, _ := renderCall("bash", json.RawMessage(input))
		var hosts []string
		for _, line := range lines {
			for _, p := range line {
				if p.Class == "host" {
					hosts = append(hosts, p.Text)
				}
			}
		}
		if got := strings.Join(hosts, " "); got != want {
			t.Errorf("%s leads to %q, want %q", input, got, want)
		}
	}
}
