package e2e_test

import (
	"bufio"
	"bytes"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
)

var example = regexp.MustCompile("(?ms)^```(sh|js|python|go|html)\n(.*?)^```$")

// TestClientsPage runs the examples of docs/clients against a server. Each asks the same
// question and prints the answer. What is for browsers is run by TestClientsPageInABrowser.
func TestClientsPage(t *testing.T) {
	t.Parallel()
	pages, err := filepath.Glob("../../docs/clients/*.md")
	if err != nil || len(pages) < 10 {
		t.Fatalf("%d pages, %v", len(pages), err)
	}
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
			if language == "html" || about == "fetch-event-source" {
				continue
			}
			run := func(t *testing.T, url, code string) string {
				cmd := command(t, about, language, code)
				cmd.Env = append(os.Environ(), "PARLEY_URL="+url, "PARLEY_API_KEY="+key)
				var errs bytes.Buffer
				cmd.Stderr = &errs
				out, err := cmd.Output()
				if err != nil || !strings.Contains(string(out), "87") {
					t.Errorf("%v\n%s%s", err, out, errs.Bytes())
				}
				return string(out)
			}
			t.Run(about+" "+language, func(t *testing.T) { run(t, s.url, code) })
			if !strings.Contains(code, "Last-Event-ID") {
				continue
			}
			t.Run(about+" "+language+" that is cut off", func(t *testing.T) {
				front, cuts := cutting(t, s.url)
				got := run(t, front, strings.ReplaceAll(code, "What is 12*7+3?", `@unicode\n@say That makes 87.`))
				var want string
				if err := w.pool.QueryRow(t.Context(), `SELECT content FROM messages WHERE role = 'assistant' ORDER BY id DESC LIMIT 1`).Scan(&want); err != nil {
					t.Fatal(err)
				}
				if cuts.Load() == 0 || got != want {
					t.Errorf("cut off %d times, it prints\n%q, want\n%q", cuts.Load(), got, want)
				}
			})
		}
	}
}

// cutting is an address with a server behind it. It cuts a stream off in the middle of its first
// text, unless that stream is one that goes on, and counts how often it did.
func cutting(t *testing.T, server string) (string, *atomic.Int32) {
	target, _ := url.Parse(server)
	cuts := new(atomic.Int32)
	front := httptest.NewServer(&httputil.ReverseProxy{
		FlushInterval: -1,
		ErrorLog:      log.New(io.Discard, "", 0),
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(target) },
		ModifyResponse: func(res *http.Response) error {
			if res.Request.Header.Get("Last-Event-ID") == "" {
				res.Body = &untilText{res.Body, bufio.NewReader(res.Body), "", cuts}
			}
			return nil
		},
	})
	t.Cleanup(func() {
		front.CloseClientConnections()
		front.Close()
	})
	return front.URL, cuts
}

// untilText is a body that breaks when a text has begun.
type untilText struct {
	io.Closer
	from *bufio.Reader
	line string
	cuts *atomic.Int32
}

// Read implements io.Reader.
func (u *untilText) Read(p []byte) (int, error) {
	b, err := u.from.ReadByte()
	if err != nil {
		return 0, err
	}
	p[0], u.line = b, u.line+string(b)
	switch {
	case strings.HasSuffix(u.line, `{"v":1,"text":"`):
		u.cuts.Add(1)
		return 1, io.ErrUnexpectedEOF
	case b == '\n':
		u.line = ""
	}
	return 1, nil
}

// command runs an example of a page, where what it needs is there.
func command(t *testing.T, about, language, code string) *exec.Cmd {
	t.Helper()
	have := func(program string) string {
		path, err := exec.LookPath(program)
		if err != nil {
			missing(t, "no "+program+", which this example is for")
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
		return exec.Command(have("bash"), "-c", code)
	case "python":
		return exec.Command(have("python3"), save("example.py"))
	case "go":
		return exec.Command(have("go"), "run", save("main.go"))
	}
	cmd := exec.Command(have("node"), "--input-type=module", "-e", code)
	if strings.Contains(code, "import ") {
		cmd.Dir = "../../compat/clients" // where it finds what it imports
		if about == "mcp" || about == "a2a" {
			cmd.Dir = "../../compat/" + about
		}
		install(t, cmd.Dir)
	}
	return cmd
}
