package e2e_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/parley-server/parley/internal/testing/need"
)

var example = regexp.MustCompile("(?ms)^```(sh|js|python|go|html|tsx)\n(.*?)^```$")

// TestClientsPage runs the examples of docs/guides/clients, and those of docs/guides/tools.md for
// clients, against a server. Each asks the same
// question and prints the answer. TestClientsPageInABrowser and TestClientsPageOfUseChat run the
// examples for browsers; CopilotKit is far too large to install for that.
func TestClientsPage(t *testing.T) {
	t.Parallel()
	pages, err := filepath.Glob("../../../docs/guides/clients/*.md")
	if err != nil || len(pages) < 10 {
		t.Fatalf("%d pages, %v", len(pages), err)
	}
	pages = append(pages, "../../../docs/guides/tools.md")
	w := newWorld(t)
	w.parley(t, "workspace", "create", "demo")
	w.parley(t, "permissions", "set", "wiki_write", "ask", "--workspace", "demo")
	key := w.parley(t, "keys", "create", "--workspace", "demo", "--name", "example",
		"--scope", "chat", "--scope", "sessions:read", "--scope", "mcp", "--scope", "a2a")
	s := w.serve(t, nil)
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		about := strings.TrimSuffix(filepath.Base(page), ".md")
		examples := example.FindAllStringSubmatch(string(text), -1)
		if len(examples) == 0 && about != "README" {
			t.Errorf("%s has no example", page)
		}
		for _, e := range examples {
			language, code := e[1], e[2]
			if language == "html" || language == "tsx" || about == "fetch-event-source" || about == "tools" && language != "js" {
				continue
			}
			if strings.Contains(code, "createServer") {
				continue // the server between browser and Parley, which TestClientsPageInABrowser runs
			}
			x := exampleRun{about, language, code}
			t.Run(about+" "+language, func(t *testing.T) {
				times := 1
				if strings.Contains(code, "wiki_write") {
					times = 2 // a user who tries an approval does so again
				}
				for range times {
					if out, errs, err := x.run(t, s.url, key); err != nil || !strings.Contains(out, "87") {
						t.Errorf("%v\n%s%s", err, out, errs)
					}
				}
			})
			if !slices.Contains([]string{"javascript", "eventsource", "python", "go"}, about) {
				continue
			}
			t.Run(about+" "+language+" that fails", func(t *testing.T) { x.fails(t, s.url, key) })
			t.Run(about+" "+language+" that is asked", func(t *testing.T) { x.isAsked(t, s.url, key) })
			if strings.Contains(code, "Idempotency-Key") {
				t.Run(about+" "+language+" that is cut off", func(t *testing.T) { x.isCutOff(t, w, s.url, key) })
			}
		}
	}
}

// command runs an example of a page, if the programs that it needs are installed.
func command(t *testing.T, about, language, code string) *exec.Cmd {
	t.Helper()
	have := func(program string) string {
		path, err := exec.LookPath(program)
		if err != nil {
			need.Missing(t, "no %s, which this example is for", program)
		}
		return path
	}
	save := func(name string) string {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, []byte(code), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	switch language {
	case "sh":
		have("curl")
		cmd := exec.Command(have("bash"), "-c", code)
		cmd.Dir = t.TempDir() // a folder that it may write to
		return cmd
	case "python":
		return exec.Command(have("python3"), save("example.py"))
	case "go":
		return exec.Command(have("go"), "run", save("main.go"))
	}
	cmd := exec.Command(have("node"), "--input-type=module", "-e", code)
	if strings.Contains(code, "import ") {
		cmd.Dir = "../../../compat/clients" // the folder with its dependencies
		if about == "mcp" || about == "a2a" {
			cmd.Dir = "../../../compat/" + about
		}
		install(t, cmd.Dir)
	}
	return cmd
}
