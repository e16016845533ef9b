//go:build unix

package devdb_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"go.uber.org/goleak"

	"github.com/parley-server/parley/internal/devdb"
	"github.com/parley-server/parley/internal/testing/need"
	"github.com/parley-server/parley/internal/testing/slow"
	"github.com/parley-server/parley/internal/testing/wait"
)

// helperDir makes this test binary run as another process that uses the server.
const helperDir = "DEVDB_TEST_DIR"

func TestMain(m *testing.M) {
	if dir := os.Getenv(helperDir); dir != "" {
		os.Exit(help(dir))
	}
	goleak.VerifyTestMain(m)
}

// report is the output of a helper after Start.
type report struct {
	Error, DSN, Dir, Version string
	Joined                   bool
	PID                      int
	Progress                 []string
}

// help uses the server until its standard input ends.
func help(dir string) int {
	signal.Ignore(os.Interrupt) // a test sends it to the whole process group
	var said report
	var mu sync.Mutex
	s, err := devdb.Start(context.Background(), devdb.Options{
		Dir: dir, Disposable: true, Progress: func(line string) {
			mu.Lock()
			defer mu.Unlock()
			said.Progress = append(said.Progress, line)
		},
	})
	mu.Lock()
	if err != nil {
		said.Error = err.Error()
	} else {
		said.DSN, said.Dir, said.Version, said.Joined = s.DSN(""), s.Dir, s.Version, s.Joined
		said.PID, _ = s.PID()
	}
	json.NewEncoder(os.Stdout).Encode(said)
	mu.Unlock()
	io.Copy(io.Discard, os.Stdin)
	if s != nil && s.Stop(context.Background()) != nil {
		return 1
	}
	return 0
}

// other is a helper process.
type other struct {
	report
	cmd *exec.Cmd
	end func()
}

// user starts a helper and waits for its report.
func user(t *testing.T, dir string, change func(*exec.Cmd)) *other {
	t.Helper()
	cmd := exec.Command("/proc/self/exe")
	if _, err := os.Stat(cmd.Path); err != nil {
		cmd = exec.Command(os.Args[0])
	}
	cmd.Dir = "/"
	cmd.Env = append(os.Environ(), helperDir+"="+dir)
	cmd.Stderr = os.Stderr
	if change != nil {
		change(cmd)
	}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	o := &other{cmd: cmd}
	ended := false
	o.end = func() {
		if !ended {
			ended = true
			stdin.Close()
			wait.Result(t, "the end of the other process", cmd.Wait)
		}
	}
	t.Cleanup(o.end)
	limit := wait.Limit
	if slices.Contains(cmd.Env, devdb.BinVariable+"=fetch") {
		limit *= 5 // it downloads, and the race detector makes unpacking slow
	}
	late := time.AfterFunc(limit, func() { cmd.Process.Kill() }) // ends its output
	defer late.Stop()
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil || json.Unmarshal([]byte(line), &o.report) != nil {
		t.Fatalf("helper printed %q, %v", line, err)
	}
	return o
}

// kill sends SIGKILL and waits until the process has ended.
func (o *other) kill(t *testing.T) {
	t.Helper()
	if err := o.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	o.end()
}

// newDir returns a directory that every user can reach, unlike t.TempDir.
func newDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "parley-devdb-")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return filepath.Join(dir, "pg")
}

// available skips the test if PostgreSQL is not available.
func available(t *testing.T) {
	t.Helper()
	slow.Test(t, "starts PostgreSQL")
	if err := devdb.Installed(t.Context()); err != nil {
		need.Missing(t, "%v", err)
	}
}

// serve starts a server in this process and stops it when the test ends.
func serve(t *testing.T, dir string) *devdb.Server {
	t.Helper()
	available(t)
	s, err := devdb.Start(t.Context(), devdb.Options{Dir: dir, Disposable: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stop(t, s) })
	return s
}

func stop(t *testing.T, s *devdb.Server) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), time.Minute)
	defer cancel()
	if err := s.Stop(ctx); err != nil {
		t.Error(err)
	}
}

func pid(t *testing.T, s *devdb.Server) int {
	t.Helper()
	n, err := s.PID()
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// query returns the only value of a query as text.
func query(t *testing.T, dsn, sql string) string {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	return ask(t, conn, sql)
}

func ask(t *testing.T, conn *pgx.Conn, sql string) string {
	t.Helper()
	rows, err := conn.Query(t.Context(), sql)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var text string
	for rows.Next() {
		values, err := rows.Values()
		if err != nil {
			t.Fatal(err)
		}
		text = strings.TrimSuffix(fmt.Sprintln(values...), "\n")
	}
	if err := rows.Err(); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return text
}

func kill(t *testing.T, pid int) {
	t.Helper()
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
}
