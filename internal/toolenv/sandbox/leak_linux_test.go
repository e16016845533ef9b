package sandbox_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/parley-server/parley/internal/testing/slow"
	"github.com/parley-server/parley/internal/toolenv/sandbox"
)

// TestRunsLeaveNothing runs alone, so that it can count open files. TestMain checks that no
// goroutine is left.
func TestRunsLeaveNothing(t *testing.T) {
	slow.Test(t, "runs many commands")
	s := open(t, sandbox.Config{})
	where := folder(t, s)
	some := func() {
		for _, c := range []sandbox.Command{
			{Argv: bash("echo x"), Folder: where, Serve: held, CA: []byte("none\n")},
			{Argv: bash("sleep 1000 & exit 1"), Folder: where},
			{Argv: []string{"/none"}, Folder: where},
			{Argv: []string{"yes"}, Folder: where, Limits: sandbox.Limits{Output: 1000}},
		} {
			_, _ = s.Run(t.Context(), c)
		}
	}
	count := func(pattern string) int {
		t.Helper()
		list, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		return len(list)
	}
	some() // opens the files that are opened once
	files, scratch := count("/proc/self/fd/*"), count(filepath.Join(filepath.Dir(where), "*"))
	for range 10 {
		some()
	}
	if n := count("/proc/self/fd/*"); n != files {
		t.Errorf("%d files are open, before: %d", n, files)
	}
	if n := count(filepath.Join(filepath.Dir(where), "*")); n != scratch {
		t.Errorf("%d files are in the directory, before: %d", n, scratch)
	}
	if list, err := os.ReadDir(where); err != nil || len(list) > 0 {
		t.Errorf("the folder has %v, %v", list, err)
	}
}
