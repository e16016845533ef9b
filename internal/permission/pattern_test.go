package permission_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/permission"
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

		// A final * covers operands, any number of them.
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

		// Never options, nor files of options.
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

		// One simple command, and nothing that bash would expand.
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

func TestPatternsOfPathsStayWhereTheyAre(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		pattern, path string
		want          bool
	}{
		{"handbook/**", "handbook/a", true},
		{"handbook/**", "handbook/a/b/c", true},
		{"handbook/**", "handbook/über uns", true},
		{"handbook/**", "handbook", false},
		{"handbook/**", "handbook/", false},
		{"handbook/**", "handbooks/a", false},
		{"handbook/**", "Handbook/a", false},
		{"handbook/**", "x/handbook/a", false},
		{"handbook/**", "handbook/../secret", false},
		{"handbook/**", "handbook/../handbook/a", false},
		{"handbook/**", "handbook//a", false},
		{"handbook/**", "handbook/./a", false},
		{"handbook/**", "./handbook/a", false},
		{"handbook/**", "/handbook/a", false},
		{"handbook/**", "../handbook/a", false},
		{"handbook/**", `handbook/a\b`, false},
		{"handbook/**", "handbook/a\x00b", false},
		{"handbook/**", "handbook/a\nb", false},
		{"handbook/**", "handbook/\u202ea", false},
		{"handbook/**", "handbook/.git", false},
		{"handbook/**", "handbook/.git/config", false},
		{"handbook/**", "handbook/a/.npmrc", false},
		{"handbook/.drafts/**", "handbook/.drafts/a", true},
		{"handbook/*", "handbook/a", true},
		{"handbook/*", "handbook/a/b", false},
		{"handbook/*", "handbook/.a", false},
		{"handbook/a*", "handbook/abc", true},
		{"handbook/a*c*", "handbook/abcd", true},
		{"handbook/a*c*", "handbook/abd", false},
		{"*.csv", "sales.csv", true},
		{"*.csv", "sales.csv.sh", false},
		{"*.csv", ".csv", false},
		{"*/notes", "a/notes", true},
		{"*/notes", "a/b/notes", false},
		{"**/notes", "notes", true},
		{"**/notes", "a/b/notes", true},
		{"**/notes", "a/.b/notes", false},
		{"a/**/z", "a/z", true},
		{"a/**/z", "a/b/c/z", true},
		{"a/**/z", "a/b/c/y", false},
		{"a/**/m/**", "a/m/x", true},
		{"a/**/m/**", "a/b/m/m/x", true},
		{"a/**/m/**", "a/b/m", false},
		{"reports/q1.md.txt", "reports/q1.md.txt", true},
	} {
		if got := must(t, "write("+c.pattern+")").Matches("write", file(c.path)); got != c.want {
			t.Errorf("write(%s) covers %q: %t", c.pattern, c.path, got)
		}
		if got := must(t, "wiki_write("+c.pattern+")").Matches("wiki_write", page(c.path)); got != c.want {
			t.Errorf("wiki_write(%s) covers %q: %t", c.pattern, c.path, got)
		}
	}
	// The tool accepts a page's document path; so does the pattern.
	for name, want := range map[string]bool{"wiki/handbook/a.md": true, "handbook/a.md": true, "wiki/private": false, "wiki/../handbook/a": false} {
		if got := must(t, "wiki_write(handbook/**)").Matches("wiki_write", page(name)); got != want {
			t.Errorf("wiki_write(handbook/**) covers %q: %t", name, got)
		}
	}
}

func TestPatternsOfRequestsMeanOneHost(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		pattern, method, url string
		want                 bool
	}{
		{"GET api.example.com/**", "GET", "https://api.example.com/v1/items", true},
		{"GET api.example.com/**", "GET", "https://api.example.com/", true},
		{"GET api.example.com/**", "GET", "https://api.example.com", true},
		{"GET api.example.com/**", "GET", "https://api.example.com/v1/?page=2", true},
		{"GET api.example.com/**", "GET", "https://API.Example.com:443/v1", true},
		{"GET api.example.com/**", "GET", "https://api.example.com/.well-known/x", true},
		{"GET api.example.com/**", "GET", "https://api.example.com/a%20b", true},
		{"GET api.example.com/**", "POST", "https://api.example.com/v1", false},
		{"GET api.example.com/**", "get", "https://api.example.com/v1", false},
		{"GET api.example.com/**", "GET", "http://api.example.com/v1", false},
		{"GET api.example.com/**", "GET", "HTTPS://api.example.com/v1", false},
		{"GET api.example.com/**", "GET", "//api.example.com/v1", false},
		{"GET api.example.com/**", "GET", "api.example.com/v1", false},
		{"GET api.example.com/**", "GET", "https://api.example.com:8443/v1", false},
		{"GET api.example.com/**", "GET", "https://api.example.com.evil.test/v1", false},
		{"GET api.example.com/**", "GET", "https://evil.test/api.example.com/v1", false},
		{"GET api.example.com/**", "GET", "https://api.example.com@evil.test/v1", false},
		{"GET api.example.com/**", "GET", "https://user:pw@api.example.com/v1", false},
		{"GET api.example.com/**", "GET", `https://evil.test\@api.example.com/v1`, false},
		{"GET api.example.com/**", "GET", "https://api.example.com./v1", false},
		{"GET api.example.com/**", "GET", "https://xapi.example.com/v1", false},
		{"GET api.example.com/**", "GET", "https://аpi.example.com/v1", false}, // a Cyrillic a
		{"GET api.example.com/**", "GET", "https://api.example.com/v1#x", false},
		{"GET api.example.com/**", "GET", "https://api.example.com/v1?_method=DELETE", false},
		{"GET api.example.com/**", "GET", "https://api.example.com/v1?%5fmethod=DELETE", false},
		{"GET api.example.com/v1/**", "GET", "https://api.example.com/v1/a/b", true},
		{"GET api.example.com/v1/**", "GET", "https://api.example.com/v1", false},
		{"GET api.example.com/v1/**", "GET", "https://api.example.com/v1/", true},
		{"GET api.example.com/v1/**", "GET", "https://api.example.com/v2/a", false},
		{"GET api.example.com/v1/**", "GET", "https://api.example.com/v1/../admin", false},
		{"GET api.example.com/v1/**", "GET", "https://api.example.com/v1/%2e%2e/admin", false},
		{"GET api.example.com/v1/**", "GET", "https://api.example.com/v1/..%2Fadmin", false},
		{"GET api.example.com/v1/**", "GET", "https://api.example.com/v1/..;/admin", false},
		{"GET api.example.com/v1/**", "GET", "https://api.example.com/v1//admin", false},
		{"GET api.example.com/v1/**", "GET", "https://api.example.com//v1/a", false},
		{"POST api.example.com/v1/items", "POST", "https://api.example.com/v1/items", true},
		{"POST api.example.com/v1/items", "POST", "https://api.example.com/v1/items?x=1", false},
		{"POST api.example.com/v1/items", "POST", "https://api.example.com/v1/items?", false},
		{"POST api.example.com/v1/items", "POST", "https://api.example.com/v1/items/", false},
		{"POST api.example.com/v1/items/", "POST", "https://api.example.com/v1/items/", true},
		{"POST api.example.com/v1/*/run", "POST", "https://api.example.com/v1/7/run", true},
		{"POST api.example.com/v1/*/run", "POST", "https://api.example.com/v1/7/8/run", false},
		{"GET api.example.com:8443/*", "GET", "https://api.example.com:8443/a", true},
		{"GET api.example.com:443/*", "GET", "https://api.example.com/a", true},
		{"GET api.example.com/", "GET", "https://api.example.com", true},
	} {
		if got := must(t, "http_request("+c.pattern+")").Matches("http_request", fetch(c.method, c.url)); got != c.want {
			t.Errorf("http_request(%s) covers %s %s: %t", c.pattern, c.method, c.url, got)
		}
	}
	all := must(t, "http_request(POST api.example.com/**)")
	for rest, want := range map[string]bool{
		`"body":"x=1"`: true, `"headers":{"Authorization":"Bearer ph_abcdefghijklmnop"}`: true, `"body":{"a":[1]}`: true,
		`"headers":{"X-HTTP-Method-Override":"DELETE"}`: false, `"headers":{"Host":"evil.test"}`: false, `"headers":{"x-original-url":"/admin"}`: false,
		`"headers":{"A":"b\r\nHost: evil"}`: false, `"headers":{"A":1}`: false, `"headers":[]`: false,
		`"body":"_method=delete"`: false, `"body":"\u005fmethod=delete"`: false, `"body":"%5Fmethod=delete"`: false, `"body":{"_method":"delete"}`: false,
		`"Method":"DELETE"`: false, `"method":"POST"`: false,
	} {
		input := json.RawMessage(`{"method":"POST","url":"https://api.example.com/v1",` + rest + `}`)
		if got := all.Matches("http_request", input); got != want {
			t.Errorf("%s covers %s: %t", all, input, got)
		}
	}
}

// TestInputThatReadersReadDifferentlyMatchesNothing: encoding/json takes the last of
// two members, and any case of their names.
func TestInputThatReadersReadDifferentlyMatchesNothing(t *testing.T) {
	t.Parallel()
	p := must(t, "bash(git status)")
	if !p.Matches("bash", json.RawMessage(` {"timeout_seconds":3, "command" : "git \u0073tatus"} `)) {
		t.Error("a plain call is not covered")
	}
	for _, input := range []string{
		``, `null`, `"git status"`, `["git status"]`, `{`, `{}`, `{"command":null}`, `{"command":["git status"]}`, `{"command":7}`,
		`{"command":"git status","command":"evil"}`, `{"command":"git status","Command":"evil"}`, `{"COMMAND":"git status"}`,
		`{"command":"git status","cwd":"/"}`, `{"command":"git status"}{"command":"evil"}`, `{"command":"git status"} x`,
		`{"command":"git status\ud800"}`, "{\"command\":\"git status\xff\"}", `{"command":"git status\u0000"}`,
	} {
		if p.Matches("bash", json.RawMessage(input)) {
			t.Errorf("%s is covered", input)
		}
	}
	if p.Matches("write", bash("git status")) || (permission.Pattern{}).Matches("bash", bash("git status")) || (permission.Pattern{}).Matches("", nil) {
		t.Error("a pattern covers another tool")
	}
}

func TestRefusedPatternsSayWhy(t *testing.T) {
	t.Parallel()
	for pattern, want := range map[string]string{
		"":                                       "names a tool",
		"   ":                                    "names a tool",
		"*":                                      "Patterns exist for",
		"**":                                     "Patterns exist for",
		"bash":                                   "in parentheses",
		"bash()":                                 "begins with a program",
		"bash(*)":                                "begins with a program",
		"bash(:*)":                               "begins with a program",
		"bash( * )":                              "begins with a program",
		"bash( *)":                               "begins with a program",
		"bash(git *)":                            "sub-commands",
		"bash(git:*)":                            "sub-commands",
		"bash(git -c *)":                         "sub-commands",
		"bash(git config *)":                     "sub-commands",
		"bash(git bisect *)":                     "sub-commands",
		"bash(git submodule *)":                  "sub-commands",
		"bash(git * main)":                       "stands alone, as the last word",
		"bash(* status)":                         "stands alone, as the last word",
		"bash(git diff * *)":                     "stands alone, as the last word",
		"bash(git diff a*)":                      "stands alone, as the last word",
		"bash(git diff **)":                      "stands alone, as the last word",
		"bash(git log; ls)":                      "not exactly one command",
		"bash(git log && ls)":                    "more than one simple command",
		"bash(git log | sh)":                     "more than one simple command",
		"bash(git log > x)":                      "redirects",
		"bash(A=b git log)":                      "sets variables",
		"bash(git log $X)":                       "expand",
		"bash(git log \"$X\")":                   "double quotes",
		"bash(git log 'a)":                       "bash would not understand",
		"bash(git log #x)":                       "behind its last word",
		"bash(if *)":                             "bash would not understand",
		"bash('if' x)":                           "no bare name of a program",
		"bash(./run.sh *)":                       "no bare name of a program",
		"bash(/bin/ls *)":                        "no bare name of a program",
		"bash(rg --pre *)":                       "value of --pre",
		"bash(mytool -o *)":                      "value of -o",
		"bash(sh *)":                             "whatever its operands say",
		"bash(bash -c *)":                        "whatever its operands say",
		"bash(env *)":                            "whatever its operands say",
		"bash(xargs *)":                          "whatever its operands say",
		"bash(find *)":                           "whatever its operands say",
		"bash(sed *)":                            "whatever its operands say",
		"bash(awk *)":                            "whatever its operands say",
		"bash(sort *)":                           "whatever its operands say",
		"bash(tar *)":                            "whatever its operands say",
		"bash(python *)":                         "whatever its operands say",
		"bash(python3 *)":                        "whatever its operands say",
		"bash(python3.12 *)":                     "whatever its operands say",
		"bash(node build.js *)":                  "whatever its operands say",
		"bash(npm run *)":                        "whatever its operands say",
		"bash(make *)":                           "whatever its operands say",
		"bash(curl *)":                           "whatever its operands say",
		"bash(ssh host *)":                       "whatever its operands say",
		"bash(docker ps *)":                      "whatever its operands say",
		"bash(eval *)":                           "whatever its operands say",
		"bash(read *)":                           "whatever its operands say",
		"bash(test *)":                           "whatever its operands say",
		"bash(git log über)":                     "ASCII",
		"bash(gіt log)":                          "ASCII",
		"bash(git log\n)":                        "ASCII",
		"bash(git log\x00)":                      "ASCII",
		"bash(git log":                           "in parentheses",
		"bash(git log) x":                        "in parentheses",
		"Bash(git log)":                          "Did you mean bash?",
		"shell(git log)":                         "Patterns exist for bash, http_request, wiki_write, write only.",
		"read(**)":                               "need no pattern",
		"request_secret(X)":                      "always asks",
		"attach_file(x)":                         "needs no pattern",
		"wiki_write":                             "in parentheses",
		"wiki_write()":                           "relative and clean",
		"wiki_write(**)":                         "names something",
		"wiki_write(*)":                          "names something",
		"wiki_write(*/**)":                       "names something",
		"wiki_write(/a)":                         "relative and clean",
		"wiki_write(a/)":                         "relative and clean",
		"wiki_write(a/../b)":                     "relative and clean",
		"wiki_write(./a)":                        "relative and clean",
		"wiki_write(a**)":                        "whole segments",
		"wiki_write(a/***)":                      "whole segments",
		"wiki_write(a?)":                         "only wildcards",
		"wiki_write([ab])":                       "only wildcards",
		`wiki_write(a\b)`:                        "only wildcards",
		"wiki_write(wiki/a.md)":                  "without wiki/ and .md",
		"wiki_write(a/**/b/**/c/**/d/**)":        "at most",
		"http_request(**)":                       "a method in capitals",
		"http_request(api.example.com/**)":       "a method in capitals",
		"http_request(get api.example.com/**)":   "a method in capitals",
		"http_request(* api.example.com/**)":     "a method in capitals",
		"http_request(GET *)":                    "written out in small letters",
		"http_request(GET **/x)":                 "written out in small letters",
		"http_request(GET *.example.com/**)":     "written out in small letters",
		"http_request(GET API.example.com/**)":   "written out in small letters",
		"http_request(GET api.example.com)":      "has a path",
		"http_request(GET https://a.example/**)": "no scheme",
		"http_request(GET u@a.example/**)":       "written out in small letters",
		"http_request(GET a.example/x?y=*)":      "no query",
		"http_request(GET a.example/%2e%2e/x)":   "no query",
		"http_request(GET a.example/../x)":       "relative and clean",
		"bash(" + strings.Repeat("a", 500) + " *)": "at most 500 bytes",
	} {
		_, err := permission.Parse(pattern)
		f := fault.From(err)
		if f == nil || f.Code != fault.InvalidAllowlistPattern || f.Param != "allowlist_pattern" || len(f.Detail.Violations) == 0 {
			t.Errorf("Parse(%q): %v", pattern, err)
			continue
		}
		var said strings.Builder
		for _, v := range f.Detail.Violations {
			said.WriteString(v.Message + " ")
			if v.Suggestion != "" && strings.Contains(v.Suggestion, "(") {
				if _, err := permission.Parse(v.Suggestion); err != nil {
					t.Errorf("Parse(%q) suggests %q, which is refused too", pattern, v.Suggestion)
				}
			}
		}
		if !strings.Contains(said.String(), want) {
			t.Errorf("Parse(%.60q) says %q, want %q", pattern, said.String(), want)
		}
	}
}

func TestPatternsHaveOneSpelling(t *testing.T) {
	t.Parallel()
	for spelling, want := range map[string]string{
		"bash(git diff *)":                      "bash(git diff *)",
		"bash(git diff:*)":                      "bash(git diff *)",
		" bash(  'git'   \"diff\"  *) ":         "bash(git diff *)",
		`bash(echo "it's" '*' '')`:              `bash(echo 'it'"'"'s' '*' '')`,
		"wiki_write(handbook/**)":               "wiki_write(handbook/**)",
		"http_request(GET a.example:443/v1/**)": "http_request(GET a.example/v1/**)",
		"http_request(GET a.example/)":          "http_request(GET a.example/)",
		"http_request(GET a.example/v1/)":       "http_request(GET a.example/v1/)",
	} {
		p := must(t, spelling)
		if p.String() != want {
			t.Errorf("%q is %q, want %q", spelling, p, want)
		}
		if again := must(t, p.String()); again.String() != p.String() || again.Tool() != p.Tool() {
			t.Errorf("%q reads as %q", p, again)
		}
	}
}

func TestSuggestionsAreNarrowAndAccepted(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		tool  string
		input json.RawMessage
		want  string
	}{
		{"bash", bash("git diff HEAD"), "bash(git diff *)"},
		{"bash", bash("git diff --stat HEAD a"), "bash(git diff --stat *)"},
		{"bash", bash("git status"), "bash(git status)"},
		{"bash", bash("git diff --output=x HEAD"), "bash(git diff --output=x HEAD)"},
		{"bash", bash("git commit -m 'a b'"), "bash(git commit -m 'a b')"},
		{"bash", bash("git push origin main"), "bash(git push origin main)"},
		{"bash", bash("ls -la src"), "bash(ls -la *)"},
		{"bash", bash("head -n 5 file"), "bash(head -n 5 file)"},
		{"bash", bash("rm -rf build"), "bash(rm -rf build)"},
		{"bash", bash("rm a b"), "bash(rm a b)"},
		{"bash", bash("python3 build.py"), "bash(python3 build.py)"},
		{"bash", bash("find . -name x"), "bash(find . -name x)"},
		{"bash", bash("./run.sh"), ""},
		{"bash", bash("git log | sh"), ""},
		{"bash", bash("echo $X"), ""},
		{"bash", bash("echo " + strings.Repeat("a", 600)), "bash(echo *)"},
		{"bash", bash("true " + strings.Repeat("a", 600)), ""},
		{"bash", json.RawMessage(`{"command":7}`), ""},
		{"wiki_write", page("handbook/travel"), "wiki_write(handbook/**)"},
		{"wiki_write", page("wiki/handbook/a/b.md"), "wiki_write(handbook/a/**)"},
		{"wiki_write", page("onboarding"), "wiki_write(onboarding)"},
		{"wiki_write", page("über"), ""},
		{"wiki_write", page("handbook/über"), "wiki_write(handbook/**)"},
		{"wiki_write", page("handbook/*"), ""},
		{"wiki_write", page("../x"), ""},
		{"write", file("reports/q1.txt"), "write(reports/**)"},
		{"write", file(".git/hooks/pre-commit"), "write(.git/hooks/pre-commit)"},
		{"write", file(".npmrc"), "write(.npmrc)"},
		{"write", file("/etc/passwd"), ""},
		{"http_request", fetch("GET", "https://api.example.com/v1/items?page=2"), "http_request(GET api.example.com/v1/**)"},
		{"http_request", fetch("POST", "https://api.example.com/v1/items"), "http_request(POST api.example.com/v1/items)"},
		{"http_request", fetch("POST", "https://api.example.com/v1/items?x=1"), ""},
		{"http_request", fetch("GET", "http://api.example.com/v1"), ""},
		{"http_request", fetch("BREW", "https://api.example.com/v1"), ""},
		{"request_secret", object("key_name", "X"), ""},
		{"wiki_read", object("page", "x"), ""},
		{"unknown", object(), ""},
	} {
		got := permission.Suggest(c.tool, c.input)
		if got != c.want {
			t.Errorf("for %s %.80s: %q, want %q", c.tool, c.input, got, c.want)
		}
		if got != "" && !must(t, got).Matches(c.tool, c.input) {
			t.Errorf("%q does not cover %s", got, c.input)
		}
	}
}
