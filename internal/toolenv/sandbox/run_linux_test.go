package sandbox_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/parley-server/parley/internal/toolenv/sandbox"
)

func TestCommandRuns(t *testing.T) {
	t.Parallel()
	s := open(t, sandbox.Config{})
	where := folder(t, s)
	r, out := run(t, s, sandbox.Command{
		Argv:   bash(`echo "$GREETING"; echo problem >&2; pwd; echo made > file; exit 7`),
		Env:    []string{"GREETING=hello", "PATH=/workspace", "HOME=/root"},
		Folder: where,
	})
	if r.Exit != 7 || r.Killed != "" || r.Took <= 0 {
		t.Errorf("the result is %+v", r)
	}
	if out != "hello\nproblem\n/workspace\n" {
		t.Errorf("the output is %q", out)
	}
	if made, err := os.ReadFile(filepath.Join(where, "file")); string(made) != "made\n" {
		t.Errorf("the file has %q, %v", made, err)
	}
	if user := owner(t, filepath.Join(where, "file")); user != owner(t, where) || user == 0 {
		t.Errorf("the file is user %d's, want %d", user, owner(t, where))
	}
	if left, _ := run(t, s, sandbox.Command{Argv: bash("test $(cat file) = made"), Folder: where}); left.Exit != 0 {
		t.Error("the next command does not find the file")
	}
}

// TestEnvironmentIsTheSandboxs reads every environment that a command can read.
func TestEnvironmentIsTheSandboxs(t *testing.T) {
	t.Setenv("SERVICE_SECRET", "canary")
	s := open(t, sandbox.Config{})
	_, out := run(t, s, sandbox.Command{
		Argv: bash(`cat /etc/ssl/cert.pem /etc/ssl/certs/ca-certificates.crt; env; cat /proc/*/environ`),
		Env:  []string{"TOKEN=ph_x", "NO_PROXY=*"}, CA: []byte("certificate\n"), Serve: held,
	})
	if strings.Contains(out, "canary") {
		t.Errorf("the service's environment is visible: %s", out)
	}
	for _, want := range []string{
		"certificate\ncertificate\n", "\nTOKEN=ph_x\n", "\nNO_PROXY=\n", "\nHTTPS_PROXY=http://127.0.0.1:3128\n",
		"\nSSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt\n", "\nHOME=/workspace\n",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is missing in %s", want, out)
		}
	}
}

func TestProxyIsTheOnlyWayOut(t *testing.T) {
	t.Parallel()
	s := open(t, sandbox.Config{})
	closed := make(chan struct{})
	serve := func(ctx context.Context, l net.Listener) error {
		defer close(closed)
		server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprintf(w, "the proxy got %s", r.URL)
		})}
		stop := context.AfterFunc(ctx, func() { server.Close() })
		defer stop()
		if err := server.Serve(l); !errors.Is(err, net.ErrClosed) {
			return err
		}
		return nil
	}
	r, out := run(t, s, sandbox.Command{Argv: with("get", "http://api.example/x"), Serve: serve})
	if r.Exit != 0 || out != "the proxy got http://api.example/x" {
		t.Errorf("%+v, %q", r, out)
	}
	select {
	case <-closed:
	default:
		t.Error("the proxy is still served")
	}
	if r, out = run(t, s, sandbox.Command{Argv: with("get", "http://127.0.0.1:3128/x")}); r.Exit == 0 {
		t.Errorf("without a proxy a server answered: %q", out)
	}
}

// get sends a request in the way of most programs.
func get(args []string) error {
	resp, err := http.Get(args[0])
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	_, err = io.Copy(os.Stdout, resp.Body)
	return err
}
