package client_test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/parley-server/parley/client"
	"github.com/parley-server/parley/internal/app"
	"github.com/parley-server/parley/internal/cli"
	"github.com/parley-server/parley/internal/store/vault"
	"github.com/parley-server/parley/internal/testing/dbtest"
	"github.com/parley-server/parley/internal/testing/need"
	"github.com/parley-server/parley/internal/testing/wait"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(exampleRunner{m}) }

// options name the server, workspace and key of the examples.
var options client.Options

// exampleRunner runs the tests and examples against a server on its own database. Without
// PostgreSQL it skips the examples, unless PARLEY_TEST_REQUIRE is "all".
type exampleRunner struct{ *testing.M }

func (r exampleRunner) Run() int {
	stop, err := startServer()
	if err != nil {
		fmt.Fprintln(os.Stderr, "the examples have no server:", err)
		if need.All() {
			return 1
		}
		_ = flag.Set("test.skip", "^Example")
		return r.M.Run()
	}
	code := r.M.Run()
	if err := stop(); err != nil {
		fmt.Fprintln(os.Stderr, "stop the server of the examples:", err)
		return 1
	}
	return code
}

// startServer starts a server, creates a workspace and a key, and sets options.
func startServer() (stop func() error, err error) {
	dsn, drop, err := dbtest.Temporary()
	if err != nil {
		return nil, err
	}
	environ := []string{"DATABASE_URL=" + dsn, "PARLEY_LISTEN=127.0.0.1:0", "PARLEY_WORKERS=4", "PARLEY_DURABILITY=off",
		"PARLEY_VAULT_KEY=" + vault.GenerateKey()}
	cfg, err := app.Load(app.Sources{Environ: environ})
	if err != nil {
		return nil, errors.Join(err, drop())
	}
	ctx, cancel := context.WithCancel(context.Background())
	ready, served := make(chan string, 1), make(chan error, 1)
	go func() { served <- app.Serve(ctx, app.Options{Config: cfg, Ready: func(url string) { ready <- url }}) }()
	stop = func() error {
		cancel()
		select {
		case err := <-served:
			return errors.Join(err, drop())
		case <-time.After(wait.Limit):
			return errors.New("the server does not end")
		}
	}
	select {
	case options.URL = <-ready:
	case <-time.After(wait.Limit):
		return nil, errors.Join(errors.New("the server is not ready"), stop())
	case err := <-served:
		cancel()
		return nil, errors.Join(err, drop())
	}
	for _, line := range []string{"workspace create demo", "permissions set wiki_write ask -w demo",
		"keys create -w demo --name example --scope all --scope admin"} {
		var out, errs bytes.Buffer
		if code := cli.Run(ctx, cli.Host{Stdout: &out, Stderr: &errs, Environ: environ, Dir: os.TempDir()}, strings.Fields(line)); code != 0 {
			return nil, errors.Join(fmt.Errorf("%s: %s", line, &errs), stop())
		}
		options.Workspace, options.Key = "demo", out.String()
	}
	return stop, nil
}
