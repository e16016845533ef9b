package e2e_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// TestChatClients lets clients that people already have talk to a server, and kills it with
// kill -9 whenever they ask for it.
func TestChatClients(t *testing.T) {
	t.Parallel()
	const dir = "../../compat/clients"
	npm := install(t, dir)
	w := newWorld(t)
	w.parley(t, "permissions", "set", "wiki_write", "ask", "--workspace", "w")
	s := w.serve(t, nil)
	crash, up := make(chan struct{}), make(chan struct{})
	control := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case crash <- struct{}{}:
			<-up
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(func() {
		control.CloseClientConnections()
		control.Close()
	})
	cmd := exec.Command(npm, "test")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "PARLEY_URL="+s.url, "PARLEY_API_KEY="+w.key, "PARLEY_CRASH_URL="+control.URL)
	var out record
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for crashes := 0; ; crashes++ {
		select {
		case <-crash:
			s.kill()
			s = w.serveAt(t, strings.TrimPrefix(s.url, "http://"), nil)
			up <- struct{}{}
			continue
		case err := <-ended:
			t.Logf("%s", out.bytes())
			if err != nil || crashes != 3 || !strings.HasSuffix(strings.TrimSpace(string(out.bytes())), "The clients have ended well.") {
				t.Errorf("npm test: %v after %d crashes", err, crashes)
			}
		}
		return
	}
}
