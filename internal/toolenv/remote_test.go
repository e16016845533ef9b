package toolenv_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/testing/wait"
	"github.com/parley-server/parley/internal/tool"
	"github.com/parley-server/parley/internal/toolenv/remote"
)

// onRunner gives the world a runner, or skips the test.
func (w *world) onRunner(t *testing.T) *world {
	t.Helper()
	w.contained(t)
	box := w.box
	w.box = nil
	socket := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	runner := remote.NewRunner(remote.RunnerConfig{Sandbox: box, Token: "the token of the test", Commands: 2, Version: "v1",
		Log: slog.New(slog.NewTextHandler(io.MultiWriter(&log, t.Output()), nil))})
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- runner.Serve(ctx, l, time.Second) }()
	t.Cleanup(func() {
		stop()
		if err := wait.Receive(t, "the end of the runner", done); err != nil {
			t.Error(err)
		}
		if lines := log.String(); !strings.Contains(lines, `msg="check ended" server=socket exit=0`) ||
			strings.Contains(lines, uuid.Nil.String()) {
			t.Errorf("the log of the runner:\n%s", lines)
		}
	})
	w.remote = remote.NewClient(remote.Config{Address: "unix://" + socket, Token: "the token of the test", Version: "v1"})
	if _, err := w.remote.Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	return w
}

// TestCommandsOnARunner checks that a command on a runner has the same environment, effects and end
// as one on the server.
func TestCommandsOnARunner(t *testing.T) {
	t.Parallel()
	w := newWorld(t).onRunner(t)
	w.register(t, "API_TOKEN", value)
	run := w.begin(t, w.turn(t, "API_TOKEN"))

	// The folder goes to the runner and its changes return, whatever they are.
	if err := run.Write(t.Context(), tool.Call{}, "in/a.txt", []byte("from write\n")); err != nil {
		t.Fatal(err)
	}
	first := bash(t, run, `cat in/a.txt; mkdir -p d/e new; echo 1 > d/e/f; echo 2 > d/g; echo '#!/bin/sh' > run.sh; chmod +x run.sh; `+
		`ln -s d/g link; ln -s /etc/passwd abs; mkfifo pipe; printf x > $'\xff\n'`)
	if want := "from write\n\n[not kept: \"pipe\": a pipe]\n"; first != want {
		t.Errorf("%q, not %q", first, want)
	}
	if got := bash(t, run, `rm -r d; echo file > d; echo 3 >> in/a.txt; rm link; mkdir link; mv run.sh new/
		ls -A | cat -v`); got != "abs\nd\nin\nlink\nnew\nM-^?\n\n" {
		t.Errorf("%q", got)
	}
	run.Close()
	run = w.begin(t, w.turn(t, "API_TOKEN")) // another process continues with the saved folder
	if got := bash(t, run, `cat d in/a.txt; test -d link && test -x new/run.sh && readlink abs
		cat $'\xff\n'`); got != "file\nfrom write\n3\n/etc/passwd\nx" {
		t.Errorf("%q", got)
	}
	if text, err := run.Text(t.Context(), "abs"); refused(t, err) == "" {
		t.Errorf("a file of the server can be read: %q", text)
	}

	// Its end.
	if got := bash(t, run, "echo a; echo b >&2; exit 7"); got != "a\nb\n[7 ]" {
		t.Errorf("%q", got)
	}
	var out bytes.Buffer
	exit, killed, err := run.Bash(t.Context(), tool.Call{}, "sleep 100", time.Second, &out)
	if exit != 137 || killed != "killed after 1 s" || err != nil {
		t.Errorf("%d %q %v", exit, killed, err)
	}
	if got := bash(t, run, "truncate -s 60M s1 s2 s3 s4 s5 s6 s7 s8 s9"); !strings.Contains(got, "together they have 540") ||
		!strings.Contains(got, "as they were before") {
		t.Errorf("%q", got)
	}
	if got := bash(t, run, "ls s* 2> /dev/null; cat d"); got != "file\n" {
		t.Errorf("%q", got)
	}

	// Its network: secrets, and only to their hosts.
	for _, curl := range []string{"curl -sS", "curl -sS --noproxy '*'"} {
		if got := bash(t, run, curl+` -H "Authorization: Bearer $API_TOKEN" https://example.com/ | tee kept; cat kept`); strings.Count(got,
			"you sent Bearer [secret:API_TOKEN]") != 2 || wait.Receive(t, "a request", w.heard) != "Bearer "+value {
			t.Errorf("%s: %q", curl, got)
		}
		if got := bash(t, run,
			curl+
				` -f -H "Authorization: Bearer $API_TOKEN" https://elsewhere.example/ 2>&1 || echo refused; echo $API_TOKEN`); !strings.Contains(got, "refused") || !strings.Contains(got, "ph_") || len(w.heard) > 0 {
			t.Errorf("%s: %q", curl, got)
		}
	}
	// Without a cgroup each socket counts as the most that it can hold, 8 MiB on some machines.
	if got := bash(t, run, `for i in $(seq 12); do curl -sS https://example.com/$i & done; wait`); strings.Count(got, "you sent") != 12 {
		t.Fatalf("%q", got)
	}
	for range 12 {
		wait.Receive(t, "a request", w.heard)
	}

	// A canceled command ends before Run does.
	ctx, cancel := context.WithCancelCause(t.Context())
	over := errors.New("it is over")
	_, _, err = run.Bash(ctx, tool.Call{}, "echo now; sleep 100", time.Minute, writer(func() { cancel(over) }))
	if !errors.Is(err, over) {
		t.Errorf("%v", err)
	}
}

// TestAttachmentsReachTheRunner brings a user's file to a command.
func TestAttachmentsReachTheRunner(t *testing.T) {
	t.Parallel()
	w := newWorld(t).onRunner(t)
	turn := w.turn(t)
	if _, err := w.files.Produce(t.Context(), w.workspace, w.session, turn.Turn, "c", "data.csv", "text/csv",
		strings.NewReader("first")); err != nil {
		t.Fatal(err)
	}
	if _, err := w.pool.Exec(t.Context(),
		`INSERT INTO turn_files (turn_id, file_id, workspace_id, n) SELECT $1, id, workspace_id, 0 FROM files`, turn.Turn); err != nil {
		t.Fatal(err)
	}
	run := w.begin(t, turn)
	for range 2 {
		if got := bash(t, run, "cat attachments/data.csv; touch attachments/new 2>&1; ls"); !strings.HasPrefix(got, "first") ||
			!strings.Contains(got, "Read-only") || !strings.HasSuffix(got, "\nattachments\n") {
			t.Errorf("%q", got)
		}
	}
}

// TestPlacesOfARunner runs more commands than the runner has places for.
func TestPlacesOfARunner(t *testing.T) {
	t.Parallel()
	w := newWorld(t).onRunner(t)
	got := make(chan string, 5)
	for n := range cap(got) {
		turn := w.turn(t)
		turn.Session = turn.Turn
		if _, err := w.pool.Exec(t.Context(), `INSERT INTO sessions (id, workspace_id, epoch) VALUES ($1, $2, $3)`, turn.Session,
			w.workspace, turn.Epoch); err != nil {
			t.Fatal(err)
		}
		run := w.begin(t, turn)
		go func() {
			var out bytes.Buffer
			_, _, err := run.Bash(t.Context(), tool.Call{}, fmt.Sprintf("sleep 0.2; echo %d", n), time.Minute, &out)
			got <- fmt.Sprint(out.String(), err)
		}()
	}
	seen := map[string]bool{}
	for range cap(got) {
		seen[wait.Receive(t, "a command", got)] = true
	}
	if len(seen) != cap(got) || !seen["3\n<nil>"] {
		t.Errorf("%v", seen)
	}
}
