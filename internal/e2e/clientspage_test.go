package e2e_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var example = regexp.MustCompile("(?ms)^```(sh|js|python|go)\n(.*?)^```$")

// TestClientsPage runs the examples of docs/clients.md against a server. Each asks the same
// question and prints the answer.
func TestClientsPage(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/clients.md")
	if err != nil {
		t.Fatal(err)
	}
	examples := example.FindAllStringSubmatch(string(page), -1)
	if len(examples) < 8 {
		t.Fatalf("the page has only %d examples", len(examples))
	}
	w := newWorld(t)
	w.parley(t, "workspace", "create", "demo")
	key := w.parley(t, "keys", "create", "--workspace", "demo", "--name", "example", "--scope", "chat", "--scope", "sessions:read")
	s := w.serve(t, nil)
	for _, e := range examples {
		language, code := e[1], e[2]
		name, _, _ := strings.Cut(strings.TrimSpace(code), "\n")
		t.Run(language+" "+name, func(t *testing.T) {
			dir := t.TempDir()
			cmd := command(t, language, code, dir)
			cmd.Env = append(os.Environ(), "PARLEY_URL="+s.url, "PARLEY_API_KEY="+key)
			out, err := cmd.CombinedOutput()
			if err != nil || !strings.Contains(string(out), "87") {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

// command runs an example, where what it needs is there.
func command(t *testing.T, language, code, dir string) *exec.Cmd {
	t.Helper()
	have := func(program string) string {
		path, err := exec.LookPath(program)
		if err != nil {
			missing(t, "no "+program+", which this example is for")
		}
		return path
	}
	save := func(name string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(code), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	switch language {
	case "sh":
		have("curl")
		return exec.Command(have("bash"), "-c", code)
	case "python":
		return exec.Command(have("python3"), save("example.py"))
	case "go":
		return exec.Command(have("go"), "run", save("main.go"))
	}
	_, packages := clients(t)
	cmd := exec.Command(have("node"), "--input-type=module", "-e", code)
	cmd.Dir = packages // where it finds what it imports
	return cmd
}
