package sandbox_test

import (
	"errors"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"

	"github.com/parley-server/parley/internal/testing/wait"
	"github.com/parley-server/parley/internal/toolenv/sandbox"
)

// TestDirectoryMayDisappear removes the sandbox's files on disk, as cleaners of temporary
// directories do: the next command recreates them.
func TestDirectoryMayDisappear(t *testing.T) {
	t.Parallel()
	for name, gone := range map[string]func(dir string) error{
		"with all around it": func(dir string) error { return os.RemoveAll(filepath.Dir(dir)) },
		"alone":              os.RemoveAll,
		"the executable alone": func(dir string) error {
			return os.RemoveAll(filepath.Join(dir, "init"))
		},
		"and is another's": func(dir string) error { return errors.Join(os.RemoveAll(dir), os.Mkdir(dir, 0o700)) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t, sandbox.Config{Dir: filepath.Join(passable(t), "runner")})
			before, err := os.Stat(filepath.Dir(folder(t, s)))
			if err != nil {
				t.Fatal(err)
			}
			if err := gone(filepath.Dir(folder(t, s))); err != nil {
				t.Fatal(err)
			}
			var all sync.WaitGroup
			for range 3 { // concurrent commands find one directory
				all.Go(func() {
					where, err := s.NewFolder("test")
					if err != nil {
						t.Error(err)
						return
					}
					if r, err := s.Run(t.Context(), sandbox.Command{Argv: bash("touch file"), Folder: where}); err != nil || r.Exit != 0 {
						t.Errorf("%+v, %v", r, err)
					}
				})
			}
			wait.Until(t, "all goroutines", all.Wait)
			dir := filepath.Dir(folder(t, s))
			after, err := os.Stat(dir)
			if err != nil || after.Mode() != before.Mode() || after.Sys().(*syscall.Stat_t).Gid != before.Sys().(*syscall.Stat_t).Gid {
				t.Errorf("it was %v, is %v, %v", before.Mode(), after.Mode(), err)
			}
			other := open(t, sandbox.Config{Dir: filepath.Dir(dir)}) // sweeps directories without a lock
			run(t, other, sandbox.Command{Argv: bash("true")})
			run(t, s, sandbox.Command{Argv: bash("true")})
			if again := filepath.Dir(folder(t, s)); again != dir {
				t.Errorf("%s was not locked: now it is %s", dir, again)
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
			if _, err := os.Lstat(dir); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("it exists after Close: %v", err)
			}
		})
	}
}

// TestRunFindsTheExecutableGone uses a folder outside the sandbox's directory, which still exists.
func TestRunFindsTheExecutableGone(t *testing.T) {
	t.Parallel()
	s := open(t, sandbox.Config{})
	dir, where := filepath.Dir(folder(t, s)), passable(t)
	if err := errors.Join(s.Give(where), os.RemoveAll(dir)); err != nil {
		t.Fatal(err)
	}
	if r, out := run(t, s, sandbox.Command{Argv: bash("touch file && echo done"), Folder: where}); r.Exit != 0 || out != "done\n" {
		t.Errorf("%+v, %s", r, out)
	}
}
