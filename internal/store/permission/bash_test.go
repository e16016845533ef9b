package permission_test

import (
	"strings"
	"testing"
)

func TestPatternsOfBashMatchArgumentsAndNeverText(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		pattern, command string
		want             bool
	}{
		// Exactly these words.
		{"bash(git status)", "git status", true},
		{"bash(git status)", "  git   status  ", true},
		{"bash(git status)", "'git' \"status\"", true},
		{"bash(git status)", "gi't' sta\"tu\"s", true},
		{"bash(git status)", "git status .", false},
		{"bash(git status)", "git", false},
		{"bash(git status)", "git statusx", false},
		{"bash(git status)", "/usr/bin/git status", false},
		{"bash(git status)", "./git status", false},
		{"bash(git status)", "GIT status", false},
		{"bash(git status)", `"git status"`, false},
		{"bash(git commit -m 'fix it')", `git commit -m "fix it"`, true},
		{"bash(git commit -m 'fix it')", "git commit -m fix it", false},
		{`bash(echo '$HOME')`, `echo '$HOME'`, true},
		{`bash(echo '$HOME')`, `echo $HOME`, false},
		{`bash(echo '$HOME')`, `echo "$HOME"`, false},
		{`bash(echo "it's")`, `echo it"'"s`, true},
		{"bash(npm test)", "npm test", true},
		{"bash(npm test)", "npm test -- --watch", false},
		{"bash(python3 build.py)", "python3 build.py", true},
		{"bash(python3 build.py)", "python3 build.py evil.py", false},
		{"bash(true)", "true", true},
		{"bash(echo '')", "echo ''", true},
		{"bash(echo '')", "echo", false},

		// A final * covers any number of operands.
		{"bash(git diff *)", "git diff", true},
		{"bash(git diff *)", "git diff HEAD", true},
		{"bash(git diff *)", "git diff main feature src/a.go", true},
		{"bash(git diff *)", "git diff 'a file.txt'", true},
		{"bash(git diff *)", "git diff 'a;b'", true},
		{"bash(git diff *)", "git diff ''", true},
		{"bash(git diff:*)", "git diff HEAD", true},
		{"bash(git log --oneline *)", "git log --oneline src", true},
		{"bash(git log --oneline *)", "git log src", false},
		{"bash(git log --oneline *)", "git log src --oneline", false},
		{"bash(git log -- *)", "git log -- src", true},
		{"bash(ls -la *)", "ls -la /tmp", true},
		{"bash(grep -rn needle *)", "grep -rn needle src", true},
		{"bash(grep -rn needle *)", "grep -rn nadel src", false},
		{"bash(grep 'a*' *)", "grep 'a*' file", true},
		{"bash(grep 'a*' *)", "grep aaa file", false},

		// It never covers options or files of options.
		{"bash(git diff *)", "git diff --output=/tmp/x", false},
		{"bash(git diff *)", "git diff --ext-diff HEAD", false},
		{"bash(git diff *)", "git diff HEAD -O/tmp/x", false},
		{"bash(git diff *)", "git diff -- a", false},
		{"bash(git diff *)", "git diff '--output=x'", false},
		{"bash(git diff *)", `git diff "-"O/tmp/x`, false},
		{"bash(git diff *)", "git diff +x", false},
		{"bash(git diff *)", "git diff @options", false},
		{"bash(git diff *)", "git -c core.pager=evil diff", false},
		{"bash(git log *)", "git log --format=%n", false},

		// It covers one simple command, without anything that bash would expand.
		{"bash(git log *)", "git log; rm -rf /", false},
		{"bash(git log *)", "git log;", false},
		{"bash(git log *)", "git log && evil", false},
		{"bash(git log *)", "git log || evil", false},
		{"bash(git log *)", "git log | sh", false},
		{"bash(git log *)", "git log |& sh", false},
		{"bash(git log *)", "git log & evil", false},
		{"bash(git log *)", "git log &", false},
		{"bash(git log *)", "git log\nevil", false},
		{"bash(git log *)", "git log\n", false},
		{"bash(git log *)", "git log\r", false},
		{"bash(git log *)", "git log\tx", false},
		{"bash(git log *)", "git log\x00", false},
		{"bash(git log *)", "git log > out", false},
		{"bash(git log *)", "git log >> ~/.ssh/authorized_keys", false},
		{"bash(git log *)", "> out git log", false},
		{"bash(git log *)", "git log 2>&1", false},
		{"bash(git log *)", "git log < in", false},
		{"bash(git log *)", "git log <<< in", false},
		{"bash(git log *)", "git log <<X\nX", false},
		{"bash(git log *)", "git log $(evil)", false},
		{"bash(git log *)", `git log "$(evil)"`, false},
		{"bash(git log *)", "git log `evil`", false},
		{"bash(git log *)", "git log \"`evil`\"", false},
		{"bash(git log *)", "git log $'\\x2d-output=x'", false},
		{"bash(git log *)", `git log $"x"`, false},
		{"bash(git log *)", "git log $X", false},
		{"bash(git log *)", "git log ${X:-evil}", false},
		{"bash(git log *)", "git log $((1))", false},
		{"bash(git log *)", "git log <(evil)", false},
		{"bash(git log *)", "git log >(evil)", false},
		{"bash(git log *)", "git log {a,--output=x}", false},
		{"bash(git log *)", "git log *", false},
		{"bash(git log *)", "git log a?", false},
		{"bash(git log *)", "git log [a-z]", false},
		{"bash(git log *)", "git log ~", false},
		{"bash(git log *)", "git log HEAD~1", false},
		{"bash(git log *)", "git log 'HEAD~1'", true},
		{"bash(git log *)", `git log \-\-output=x`, false},
		{"bash(git log *)", `git log "\-x"`, false},
		{"bash(git log *)", "git log # comment", false},
		{"bash(git log *)", "git log !x", false},
		{"bash(git log *)", "! git log", false},
		{"bash(git log *)", "time git log", false},
		{"bash(git log *)", "coproc git log", false},
		{"bash(git log *)", "(git log)", false},
		{"bash(git log *)", "{ git log; }", false},
		{"bash(git log *)", "if git log; then evil; fi", false},
		{"bash(git log *)", "git() { evil; }", false},
		{"bash(git log *)", "GIT_PAGER=evil git log", false},
		{"bash(git log *)", "GIT_PAGER=evil", false},
		{"bash(git log *)", "git log 'unclosed", false},
		{"bash(git log *)", "git log über", false},
		{"bash(git log *)", "gіt log", false}, // a Cyrillic i
		{"bash(git log *)", "", false},
		{"bash(git log *)", "   ", false},
		{"bash(git log *)", "git log " + strings.Repeat("a", 9000), false},
		{"bash(cd:*)", "cd x && python3 evil.py", false},
		{"bash(cd:*)", "cd x", true},
		{"bash(echo *)", "echo ssh-rsa AAA >> authorized_keys", false},
		{"bash(echo *)", "echo 'a' > 'b'", false},
		{"bash(echo *)", `echo "a > b"`, true},
	} {
		if got := must(t, c.pattern).Matches("bash", bash(c.command)); got != c.want {
			t.Errorf("%s covers %q: %t", c.pattern, c.command, got)
		}
	}
}
