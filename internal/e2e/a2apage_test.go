package e2e_test

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// eightySeven is the answer, and no part of an id.
var eightySeven = regexp.MustCompile(`= 87\b`)

// TestA2APage runs the clients of docs/a2a.md.
func TestA2APage(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/a2a.md")
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t)
	key := w.parley(t, "keys", "create", "--workspace", "w", "--name", "example", "--scope", "a2a")
	s := w.serve(t, nil)
	ran := make(map[string]bool)
	for _, e := range example.FindAllStringSubmatch(string(page), -1) {
		language, code := e[1], e[2]
		if !strings.Contains(code, "PARLEY_URL") { // a command of the administrator's
			continue
		}
		ran[language] = true
		t.Run(language, func(t *testing.T) {
			cmd := command(t, "a2a", language, code)
			cmd.Env = append(os.Environ(), "PARLEY_URL="+s.url, "PARLEY_API_KEY="+key)
			if out, err := cmd.CombinedOutput(); err != nil || !eightySeven.Match(out) {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
	if !ran["js"] || !ran["sh"] {
		t.Errorf("the page has examples in %v", ran)
	}
}
