package permission_test

import (
	"strings"
	"testing"

	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/store/permission"
)

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
		"wiki_write(wiki/**)":                    "without wiki/ and .md",
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
			t.Errorf("Parse(%.60q) returns %q, want %q", pattern, said.String(), want)
		}
	}
}
