package sandbox_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/parley-server/parley/internal/toolenv/sandbox"
)

// needGit skips the test if git is not installed.
func needGit(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		unavailable(t, err)
	}
}

// TestFilesAreNoRepository puts the files of a repository directly into the folder, with a command
// that git would run.
func TestFilesAreNoRepository(t *testing.T) {
	t.Parallel()
	needGit(t)
	s := open(t, sandbox.Config{})
	for _, command := range []string{"git diff", "git status", "cd deep/er && git diff", "git diff HEAD refs"} {
		where := folder(t, s)
		for name, content := range map[string]string{
			"HEAD": "ref: refs/heads/main\n",
			"config": "[core]\n\trepositoryformatversion = 0\n\tbare = false\n\tworktree = /workspace\n\tfsmonitor = \"touch " +
				"/workspace/obeyed; false\"\n",
			"objects/x": "",
			"refs/x":    "",
			"deep/er/x": "",
		} {
			path := filepath.Join(where, name)
			if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.Give(where); err != nil {
			t.Fatal(err)
		}
		_, out := run(t, s, sandbox.Command{Argv: bash(command), Folder: where})
		if _, err := os.Stat(filepath.Join(where, "obeyed")); err == nil {
			t.Errorf("%s ran the command in the files: %s", command, out)
		}
	}
}

func TestRepositoriesWork(t *testing.T) {
	t.Parallel()
	needGit(t)
	s := open(t, sandbox.Config{})
	r, out := run(t, s, sandbox.Command{Argv: bash(`set -e
		export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@example.com GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@example.com
		git init -q -b main . && git diff
		echo one > file && git add file && git commit -q -m one
		echo two > file && git diff
		mkdir sub && cd sub && git diff --stat && cd ..
		git worktree add -q ../tmp/tree && git -C ../tmp/tree log --format=%s
		git init -q -b main --bare central && git push -q central main && git clone -q central copy && git -C copy status --short
		git --git-dir=central log --format=again:%s`)})
	if r.Exit != 0 || !strings.Contains(out, "+two") || !strings.Contains(out, "again:one") {
		t.Errorf("%+v: %s", r, out)
	}
}
