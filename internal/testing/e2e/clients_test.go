package e2e_test

import (
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// TestChatClients runs published chat clients against a server that is killed with kill -9 whenever
// they request it.
func TestChatClients(t *testing.T) {
	t.Parallel()
	const dir = "../../../compat/clients"
	npm := install(t, dir)
	w := newWorld(t)
	w.parley(t, "permissions", "set", "wiki_write", "ask", "--workspace", "w")
	w.parley(t, "secrets", "set", "API_TOKEN", "--workspace", "w", "--host", "example.com", "--no-value")
	key := w.parley(t, "keys", "create", "--workspace", "w", "--name", "clients", "--scope", "chat", "--scope", "sessions:read", "--scope",
		"secret", "--scope", "wiki:write")
	secret := w.parley(t, "callbacks", "secret", "--workspace", "w")
	hook := freePort(t)
	env := []string{"PARLEY_EGRESS_ALLOW=http://hook.example:" + hook + "=127.0.0.1:" + hook}
	cmd := exec.Command(npm, "test")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "PARLEY_API_KEY="+key, "PARLEY_HOOK_PORT="+hook, "PARLEY_HOOK_SECRET="+secret)
	w.endure(t, cmd, env, 3)
}

// endure runs clients with a server of their own, which they kill with kill -9 so many times:
// another one replaces it.
func (w *world) endure(t *testing.T, cmd *exec.Cmd, env []string, kills int) {
	t.Helper()
	s := w.serve(t, env)
	crash, up := make(chan struct{}), make(chan struct{})
	control := http.NewServeMux()
	control.HandleFunc("POST /crash", func(_ http.ResponseWriter, r *http.Request) {
		select {
		case crash <- struct{}{}:
			<-up
		case <-r.Context().Done():
		}
	})
	control.HandleFunc("POST /expire", func(http.ResponseWriter, *http.Request) { w.expire(t) })
	front := httptest.NewServer(control)
	t.Cleanup(func() {
		front.CloseClientConnections()
		front.Close()
	})
	cmd.Env = append(cmd.Env, "PARLEY_URL="+s.url, "PARLEY_CONTROL_URL="+front.URL)
	var out record
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for killed := 0; ; killed++ {
		select {
		case <-crash:
			s.kill()
			s = w.serveAt(t, strings.TrimPrefix(s.url, "http://"), env)
			up <- struct{}{}
			continue
		case err := <-ended:
			t.Logf("%s", out.bytes())
			if err != nil || killed != kills || !strings.HasSuffix(strings.TrimSpace(string(out.bytes())), "The clients have ended well.") {
				t.Errorf("npm test: %v after %d crashes", err, killed)
			}
		}
		return
	}
}

// expire lets every question expire, and waits until the servers have noticed.
func (w *world) expire(t *testing.T) {
	if _, err := w.pool.Exec(t.Context(), `UPDATE approvals SET expires_at = now() WHERE status = 'pending'`); err != nil {
		t.Error(err)
		return
	}
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for pending := true; pending; <-tick.C {
		if err := w.pool.QueryRow(t.Context(), `SELECT count(*) > 0 FROM approvals WHERE status = 'pending'`).Scan(&pending); err != nil {
			t.Error(err)
			return
		}
	}
}

// freePort returns a port of this machine that is not in use.
func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	return port
}
