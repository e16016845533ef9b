package e2e_test

import (
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

var snippet = regexp.MustCompile("(?ms)^```(sh|js|json)\n(.*?)^```$")

// TestMCPPage runs the commands and the example of docs/reference/mcp.md, and connects with the
// configurations of clients.
func TestMCPPage(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../../docs/reference/mcp.md")
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t)
	key := w.parley(t, "keys", "create", "--workspace", "w", "--name", "editor", "--scope", "mcp")
	w.parley(t, "permissions", "set", "wiki_write", "ask", "--workspace", "w")
	s := w.serve(t, nil)
	ran := map[string]int{}
	for _, m := range snippet.FindAllStringSubmatch(string(page), -1) {
		language, code := m[1], strings.ReplaceAll(m[2], "https://parley.example.com", s.url)
		switch {
		case language == "json":
			configured(t, code, key)
		case language == "js":
			cmd := exec.Command("node", "--input-type=module", "-e", code)
			cmd.Dir = "../../../compat/mcp"
			install(t, cmd.Dir)
			cmd.Env = append(os.Environ(), "PARLEY_URL="+s.url, "PARLEY_API_KEY="+key,
				"COMMAND=@say I would.\n@call wiki_write {\"page\":\"x\",\"content\":\"y\"}\n@say It is 87.")
			if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "allowed: wiki_write: ") ||
				!strings.HasSuffix(string(out), "\nIt is 87.\n") {
				t.Errorf("%v\n%s", err, out)
			}
		case strings.HasPrefix(code, "curl "):
			cmd := exec.Command("bash", "-c", code)
			cmd.Env = append(os.Environ(), "PARLEY_URL="+s.url, "PARLEY_API_KEY="+key)
			if out, err := cmd.Output(); err != nil || !strings.Contains(string(out), `"send_message"`) || !json.Valid(out) {
				t.Errorf("%v\n%s", err, out)
			}
		case !strings.HasPrefix(code, "parley keys create ") && !strings.HasPrefix(code, "claude mcp add ") && !strings.HasPrefix(code,
			"npx @modelcontextprotocol/inspector"):
			t.Errorf("no test runs\n%s", code)
		}
		ran[language]++
	}
	if ran["json"] != 5 || ran["js"] != 1 || ran["sh"] != 4 {
		t.Errorf("%v", ran)
	}
}

// configured connects like a client with a configuration.
func configured(t *testing.T, code, key string) {
	t.Helper()
	var file struct {
		Inputs []struct{ ID string }
		Cursor map[string]host `json:"mcpServers"`
		VSCode map[string]host `json:"servers"`
	}
	if err := json.Unmarshal([]byte(code), &file); err != nil {
		t.Errorf("%v\n%s", err, code)
		return
	}
	for _, hosts := range []map[string]host{file.Cursor, file.VSCode} {
		for _, h := range hosts {
			var transport mcp.Transport
			if h.Command != "" {
				cmd := exec.Command(binary, h.Args...)
				cmd.Env = environ()
				if h.Command == "npx" {
					npm := install(t, "../../../compat/mcp")
					cmd = exec.Command(filepath.Join(filepath.Dir(npm), h.Command), h.Args...)
					cmd.Dir, cmd.Env = "../../../compat/mcp", append(os.Environ(), "MCP_REMOTE_CONFIG_DIR="+t.TempDir())
				}
				for name, value := range h.Env {
					cmd.Env = append(cmd.Env, name+"="+strings.ReplaceAll(value, "prl_…", key))
				}
				transport = &mcp.CommandTransport{Command: cmd}
			} else {
				for _, variable := range []string{"${PARLEY_API_KEY}", "${env:PARLEY_API_KEY}", "${input:parley-key}"} {
					h.Headers["Authorization"] = strings.ReplaceAll(h.Headers["Authorization"], variable, key)
				}
				own := &http.Transport{}
				t.Cleanup(own.CloseIdleConnections)
				transport = &mcp.StreamableClientTransport{Endpoint: h.URL,
					HTTPClient: &http.Client{Transport: keyed{strings.TrimPrefix(h.Headers["Authorization"], "Bearer "), own}}, MaxRetries: -1}
			}
			cs, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(), transport, nil)
			if err != nil {
				t.Errorf("%v\n%s", err, code)
				continue
			}
			res, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "send_message", Arguments: map[string]any{"command": "@say Hello."}})
			if err != nil || res.IsError {
				t.Errorf("%v %+v\n%s", err, res, code)
			}
			_ = cs.Close()
		}
	}
}

// host is the address of a server in a configuration.
type host struct {
	URL     string
	Headers map[string]string
	Command string
	Args    []string
	Env     map[string]string
}

// TestMCPConformanceIsDocumented checks that the page lists every case that does not apply.
func TestMCPConformanceIsDocumented(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../../docs/reference/mcp.md")
	if err != nil {
		t.Fatal(err)
	}
	list, err := os.ReadFile("../../../compat/mcp/expected-failures.yaml")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for line := range strings.SplitSeq(string(list), "\n") {
		name, ok := strings.CutPrefix(line, "  - ")
		if !ok {
			continue
		}
		if n++; !regexp.MustCompile(`[ ,]` + name + `[ ,]`).Match(page) {
			t.Errorf("docs/reference/mcp.md has no %s", name)
		}
	}
	if n != 28 {
		t.Errorf("%d cases", n)
	}
}
