//go:build linux

package app_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/parley-server/parley/internal/app"
	"github.com/parley-server/parley/internal/testing/dbtest"
	"github.com/parley-server/parley/internal/testing/need"
	"github.com/parley-server/parley/internal/testing/slow"
	"github.com/parley-server/parley/internal/testing/wait"
)

const runnerToken = "a token that the test and its runner share"

// runRunner runs a runner with TLS until the test ends, or skips the test. It returns the address and
// the file with the certificate. It sets no user ids for commands: where root runs the test, the runner
// picks them as parley sandbox check does. stop ends it early.
func runRunner(t *testing.T) (address, ca string, stop func()) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	_ = l.Close()
	like := httptest.NewUnstartedServer(nil)
	like.StartTLS()
	like.Close()
	pair := like.TLS.Certificates[0]
	key, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	ca = write(t, "cert", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: pair.Certificate[0]})))
	environ := []string{"PARLEY_RUNNER_TOKEN=" + runnerToken, "PARLEY_RUNNER_LISTEN=" + addr, "PARLEY_RUNNER_CERT=" + ca,
		"PARLEY_RUNNER_KEY=" + write(t, "key", string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key})))}
	cfg, err := app.Load(app.Sources{Environ: environ})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- app.ServeRunner(ctx, cfg, slog.New(slog.NewTextHandler(t.Output(), nil))) }()
	halt := sync.OnceFunc(func() {
		cancel()
		if err := wait.Receive(t, "the end of the runner", done); err != nil && ctx.Err() == nil {
			t.Error(err)
		}
	})
	t.Cleanup(halt)
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}}
	wait.For(t, "the runner", func() bool {
		select {
		case err := <-done:
			done <- nil
			need.Missing(t, "%v", err)
		default:
		}
		res, err := client.Get("https://" + addr + "/healthz")
		if err != nil {
			return false
		}
		res.Body.Close()
		return res.StatusCode == http.StatusOK
	})
	return "https://" + addr, ca, halt
}

func TestDoctorChecksTheRunner(t *testing.T) {
	t.Parallel()
	slow.Test(t, "runs commands")
	address, ca, _ := runRunner(t)
	right := []string{"PARLEY_SANDBOX=auto", "PARLEY_RUNNER=" + address, "PARLEY_RUNNER_TOKEN=" + runnerToken, "PARLEY_RUNNER_CA=" + ca}
	if f := examine(t, right...)["sandbox"]; f.Grade == app.GradeFail || !strings.Contains(f.Result, "Commands run on "+address) {
		t.Errorf("%+v", f)
	}
	for want, environ := range map[string]string{
		"does not accept the token": "PARLEY_RUNNER_TOKEN=" + strings.Repeat("x", 40), "certificate": "PARLEY_RUNNER_CA=",
		"cannot be reached": "PARLEY_RUNNER=https://127.0.0.1:1",
	} {
		expectFinding(t, examine(t, append(right, environ)...)["sandbox"], app.GradeFail, want)
	}
}

// TestLostRunnerIsReported ends the runner of a server that requires commands.
func TestLostRunnerIsReported(t *testing.T) {
	t.Parallel()
	slow.Test(t, "runs commands")
	address, ca, halt := runRunner(t)
	log := &lines{}
	at, _, err := serve(t, app.Options{Log: log.logger()}, "DATABASE_URL="+dbtest.DSN(t), "PARLEY_LISTEN=127.0.0.1:0",
		"PARLEY_METRICS_LISTEN=127.0.0.1:0",
		"PARLEY_SANDBOX=require", "PARLEY_RUNNER="+address, "PARLEY_RUNNER_TOKEN="+runnerToken, "PARLEY_RUNNER_CA="+ca)
	if err != nil {
		t.Fatal(err)
	}
	until(t, func() bool { return len(log.find("serving metrics")) == 1 })
	observer := "http://" + log.find("serving metrics")[0]["address"].(string)
	expect := func(available string, ready int, body string) {
		t.Helper()
		if _, text := fetch(t, observer+"/metrics"); !strings.Contains(text, "\nparley_sandbox_available "+available+"\n") {
			t.Errorf("parley_sandbox_available is not %s", available)
		}
		if status, text := fetch(t, at+"/readyz"); status != ready || !strings.Contains(text, body) {
			t.Errorf("readyz: %d %s", status, text)
		}
	}
	expect("1", http.StatusOK, "ok")
	halt()
	expect("0", http.StatusServiceUnavailable, "it cannot run commands")
}

func TestRunnerDoesNotStart(t *testing.T) {
	t.Parallel()
	const token = "PARLEY_RUNNER_TOKEN=" + runnerToken
	for want, environ := range map[string][]string{
		"PARLEY_RUNNER_TOKEN is not set":    nil,
		"at least 32 are required":          {"PARLEY_RUNNER_TOKEN=short"},
		"no certificate is set":             {token, "PARLEY_RUNNER_LISTEN=:8090"},
		"belong together":                   {token, "PARLEY_RUNNER_CERT=x"},
		"it takes host:port":                {token, "PARLEY_RUNNER_LISTEN=unix://x"},
		"contained here: PARLEY_SANDBOX_RO": {token, "PARLEY_SANDBOX_UID=64001", "PARLEY_SANDBOX_ROOT=" + filepath.Join(t.TempDir(), "none")},
		// A socket needs no certificate: the runner gets as far as its sandbox.
		"contained here: PARLEY_SANDBOX_ROOT": {token, "PARLEY_RUNNER_LISTEN=unix:///run/s", "PARLEY_SANDBOX_UID=64001",
			"PARLEY_SANDBOX_ROOT=" + filepath.Join(t.TempDir(), "none")},
		"PARLEY_RUNNER_TOKEN is not. ": {"PARLEY_RUNNER=unix:///s"},
		"without encryption":           {token, "PARLEY_RUNNER=http://runner:8090"},
	} {
		cfg, err := app.Load(app.Sources{Environ: environ})
		if err == nil {
			err = app.ServeRunner(t.Context(), cfg, slog.New(slog.DiscardHandler))
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, not %q", err, want)
		}
		if start, ok := errors.AsType[*app.StartError](err); ok && start.Do == "" {
			t.Errorf("%v has no remedy", err)
		}
	}
}
