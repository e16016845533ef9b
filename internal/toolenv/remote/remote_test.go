package remote

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/hashicorp/yamux"
	"go.uber.org/goleak"

	"github.com/parley-server/parley/internal/testing/wait"
	"github.com/parley-server/parley/internal/toolenv/sandbox"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestRunnerRefuses sends requests that a runner must not accept.
func TestRunnerRefuses(t *testing.T) {
	t.Parallel()
	runner := httptest.NewServer(NewRunner(RunnerConfig{Token: "right", Version: "v1"}))
	t.Cleanup(runner.Close)
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set(versionHeader, "v9")
		w.Header().Set("Upgrade", "parley-runner/7")
		w.WriteHeader(http.StatusUpgradeRequired)
	}))
	t.Cleanup(other.Close)
	web := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(web.Close)
	for want, cfg := range map[string]Config{
		"does not accept the token":                             {Address: runner.URL, Token: "wrong"},
		`is parley "v9" and uses protocol 7`:                    {Address: other.URL},
		"is not a runner":                                       {Address: web.URL},
		"the runner cannot be reached at unix:///nonexistent/s": {Address: "unix:///nonexistent/s"},
	} {
		if _, err := NewClient(cfg).Check(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, not %q", err, want)
		}
	}
	for _, header := range []http.Header{
		{"Authorization": {"Bearer right"}, "Upgrade": {"parley-runner/2"}}, {"Authorization": {"Bearer right"}},
		{"Authorization": {"right"}, "Upgrade": {"parley-runner/1"}}, {"Upgrade": {"parley-runner/1"}},
	} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, runner.URL+commandPath, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header = header
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode != http.StatusUnauthorized && res.StatusCode != http.StatusUpgradeRequired {
			t.Errorf("%v: %s", header, res.Status)
		}
	}
	http.DefaultClient.CloseIdleConnections()
}

// TestProbe checks each state of a runner that a server can meet.
func TestProbe(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), wait.Limit)
	defer cancel()
	start := func(h http.Handler) string {
		s := httptest.NewServer(h)
		t.Cleanup(s.Close)
		return s.URL
	}
	running, stopping := NewRunner(RunnerConfig{Token: "right", Version: "v1"}), NewRunner(RunnerConfig{Token: "right", Version: "v1"})
	stopping.stop(wait.Limit)
	runner := start(running)
	for want, cfg := range map[string]Config{
		"":                          {Address: runner, Token: "right"},
		"does not accept the token": {Address: runner, Token: "wrong"},
		"it is stopping":            {Address: start(stopping), Token: "right"},
		"is not a runner":           {Address: start(http.NotFoundHandler())},
		"cannot be reached":         {Address: "unix:///nonexistent/s"},
	} {
		if err := NewClient(cfg).Probe(ctx); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%v, not %q", err, want)
		}
	}
	frozen, end := context.WithCancel(ctx)
	address := start(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { end(); <-r.Context().Done() }))
	if err := NewClient(Config{Address: address}).Probe(frozen); err == nil {
		t.Error("a frozen runner is available")
	}
	res, err := http.Get(runner + healthPath) // as an orchestrator does, without a token
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if res.StatusCode != http.StatusOK {
		t.Errorf("without a token: %s", res.Status)
	}
	http.DefaultClient.CloseIdleConnections()
}

// hostile returns a client of a runner that behaves as f after it has received a command.
func hostile(t *testing.T, f func(*frames, *yamux.Session)) *Client {
	t.Helper()
	r := NewRunner(RunnerConfig{Token: "right", Sandbox: &sandbox.Sandbox{}, Version: "v1"})
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		conn, err := r.upgrade(w)
		if err != nil {
			t.Error(err)
			return
		}
		mux, err := yamux.Server(conn, muxConfig())
		if err != nil {
			t.Error(err)
			return
		}
		defer mux.Close()
		control, err := mux.AcceptStream()
		if err != nil {
			t.Error(err)
			return
		}
		c := &frames{Reader: control, w: control}
		var o order
		err = c.readJSON(orderFrame, maxOrder, &o)
		if _, failed := io.Copy(io.Discard, &archive{frames: c}); err != nil || failed != nil {
			t.Error(err, failed)
			return
		}
		f(c, mux)
		<-mux.CloseChan()
	}))
	t.Cleanup(s.Close)
	return NewClient(Config{Address: s.URL, Token: "right"})
}

// TestHostileRunner lets a runner send what it must not. Each command ends without any effect outside
// its folder.
func TestHostileRunner(t *testing.T) {
	t.Parallel()
	for name, f := range map[string]func(*frames, *yamux.Session){
		"unexpected": func(c *frames, _ *yamux.Session) { _ = c.writeFrame(killFrame, nil) },
		"long":       func(c *frames, _ *yamux.Session) { _, _ = c.w.Write([]byte("o\xff\xff\xff\xff")) },
		"talkative": func(c *frames, _ *yamux.Session) {
			for c.writeFrame(outputFrame, make([]byte, 10)) == nil {
			}
		},
		"begins twice": func(c *frames, _ *yamux.Session) {
			for range 2 {
				_ = c.writeFrame(begunFrame, nil)
			}
		},
		"no JSON": func(c *frames, _ *yamux.Session) { _ = c.writeFrame(outcomeFrame, []byte("[")) },
		"outside": func(c *frames, _ *yamux.Session) {
			_ = c.writeJSON(outcomeFrame, outcome{})
			w := tar.NewWriter(pieces{c, folderFrame})
			_ = w.WriteHeader(&tar.Header{Name: "../outside", Typeflag: tar.TypeReg})
			_ = w.Close()
			_ = c.writeFrame(endFrame, nil)
		},
		"trailing": func(c *frames, _ *yamux.Session) {
			_ = c.writeJSON(outcomeFrame, outcome{})
			_, _ = pieces{c, folderFrame}.Write(make([]byte, 2048))
		},
		"streams": func(_ *frames, mux *yamux.Session) {
			for {
				if _, err := mux.OpenStream(); err != nil {
					return
				}
			}
		},
		"gone":     func(_ *frames, mux *yamux.Session) { mux.Close() },
		"canceled": func(c *frames, _ *yamux.Session) { _ = c.writeJSON(outcomeFrame, outcome{Canceled: true}) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client, dir := hostile(t, f), filepath.Join(t.TempDir(), "folder")
			if err := os.Mkdir(dir, 0o755); err != nil {
				t.Fatal(err)
			}
			done := make(chan error, 1)
			var out bytes.Buffer
			go func() {
				_, err := client.Run(t.Context(), uuid.New(), sandbox.Command{Argv: []string{"x"}, Folder: dir, Output: &out,
					Limits: sandbox.Limits{Output: 100}})
				done <- err
			}()
			if err := wait.Receive(t, "the end", done); !errors.Is(err, ErrLost) || out.Len() > 100 {
				t.Errorf("%v, with %d bytes of output", err, out.Len())
			}
			if left, _ := filepath.Glob(filepath.Dir(dir) + "/*"); len(left) != 1 {
				t.Errorf("%v", left)
			}
		})
	}
}

// TestUnconfirmedCancel cancels a command whose runner does not confirm its end.
func TestUnconfirmedCancel(t *testing.T) {
	t.Parallel()
	began := make(chan struct{})
	client := hostile(t, func(*frames, *yamux.Session) { close(began) })
	ctx, cancel := context.WithCancelCause(t.Context())
	over := errors.New("it is over")
	done := make(chan error, 1)
	go func() {
		_, err := client.Run(ctx, uuid.New(), sandbox.Command{Argv: []string{"x"}, Folder: t.TempDir()})
		done <- err
	}()
	wait.Receive(t, "the command", began)
	cancel(over)
	if err := wait.Receive(t, "the end", done); !errors.Is(err, over) {
		t.Error(err)
	}
}

// TestAddresses checks which addresses a server accepts.
func TestAddresses(t *testing.T) {
	t.Parallel()
	for address, plain := range map[string]bool{"https://runner:8090": false, "unix:///run/s": false, "http://127.0.0.1:8090": false,
		"http://[::1]:1/": false, "http://runner:8090": true} {
		if why := CheckAddress(address, plain); why != "" {
			t.Errorf("%s: %s", address, why)
		}
	}
	for _, address := range []string{"", "runner:8090", "http://runner:8090", "unix://s", "unix://host/s", "ftp://x", "https://",
		"https://x/path", "https://me@x", "https://x?y", "http://127.0.0.1.example.com"} {
		if why := CheckAddress(address, false); why == "" {
			t.Errorf("%q is accepted", address)
		}
	}
}
