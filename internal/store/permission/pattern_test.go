package permission_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/parley-server/parley/internal/store/permission"
)

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
