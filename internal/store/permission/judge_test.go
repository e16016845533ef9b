package permission_test

import (
	"encoding/base64"
	"encoding/json"
	"testing"

	"pgregory.net/rapid"

	"github.com/parley-server/parley/internal/store/permission"
)

var (
	writer = []string{"chat", "wiki:write"}
	caller = []string{"chat", "mcp"} // the scopes that mcp includes are not expanded here and do not count
)

func TestBuiltInRules(t *testing.T) {
	t.Parallel()
	encoded := base64.StdEncoding.EncodeToString([]byte("user:ph_abcdefghijklmnopqrstuvwx"))
	for _, c := range []struct {
		tool   string
		input  json.RawMessage
		scopes []string
		want   permission.Verdict
	}{
		{"wiki_read", object("page", "x"), nil, permission.Allow},
		{"read", object("path", "x"), nil, permission.Allow},
		{"grep", object("pattern", "x"), nil, permission.Allow},
		{"attach_file", object("path", "x"), nil, permission.Allow},
		{"request_secret", object("key_name", "X"), writer, permission.Ask},
		{"bash", bash("true"), writer, permission.Ask},
		{"wiki_write", page("x"), writer, permission.Allow},
		{"wiki_write", page("x"), caller, permission.Ask},
		{"wiki_write", page("x"), nil, permission.Ask},
		{"wiki_write", page("x"), []string{"wiki:write:all", "wiki"}, permission.Ask},
		{"write", file("reports/a"), nil, permission.Allow},
		{"write", file(".git/config"), nil, permission.Ask},
		{"write", file("a/.npmrc"), nil, permission.Ask},
		{"write", file("HEAD"), nil, permission.Ask},
		{"write", file("a/HEAD"), nil, permission.Ask},
		{"write", file("HEAD/a"), nil, permission.Ask},
		{"write", file("a/Head"), nil, permission.Ask},
		{"write", file("a/HEADER.md"), nil, permission.Allow},
		{"write", file("../a"), nil, permission.Ask},
		{"write", file("/a"), nil, permission.Ask},
		{"http_request", fetch("GET", "https://a.example/x?y=1"), nil, permission.Allow},
		{"http_request", fetch("HEAD", "http://a.example/x"), nil, permission.Allow},
		{"http_request", object("url", "https://a.example"), nil, permission.Allow},
		{"http_request", fetch("POST", "https://a.example"), nil, permission.Ask},
		{"http_request", fetch("get", "https://a.example"), nil, permission.Ask},
		{"http_request", object("url", "https://a.example", "body", "x"), nil, permission.Ask},
		{"http_request", object("url", "https://a.example/ph_abcdefgh23456"), nil, permission.Ask},
		{"http_request", json.RawMessage(`{"url":"https://a.example","headers":{"Accept":"text/html"}}`), nil, permission.Allow},
		{"http_request", json.RawMessage(`{"url":"https://a.example","headers":{"Authorization":"x"}}`), nil, permission.Ask},
		{"http_request", json.RawMessage(`{"url":"https://a.example","headers":{"Accept":"\u0070h_abcdefgh23456"}}`), nil, permission.Ask},
		{"http_request", json.RawMessage(`{"url":"https://a.example","headers":{"Accept":"Bearer ${API_TOKEN}"}}`), nil, permission.Ask},
		{"http_request", json.RawMessage(`{"url":"https://a.example","headers":{"Accept":"Basic ` + encoded + `"}}`), nil, permission.Ask},
		{"http_request", json.RawMessage(`{"url":"https://a.example","headers":{"User-Agent":"bASIC ` + encoded + `"}}`), nil, permission.Ask},
		{"http_request", object("url", "https://a.example/?key=${API_TOKEN}"), nil, permission.Ask},
		{"http_request", object("url", "ftp://a.example"), nil, permission.Ask},
		{"Bash", bash("true"), writer, permission.Ask},
		{"nobody_knows", nil, writer, permission.Ask},
		{"", nil, writer, permission.Ask},
	} {
		j := permission.Rules{}.Judge(c.tool, c.input, c.scopes)
		if j.Verdict != c.want || j.Reason == "" {
			t.Errorf("%s %s with %v: %s, %q", c.tool, c.input, c.scopes, j.Verdict, j.Reason)
		}
	}
}

// TestMalformedInputIsNeverMorePermitted corrupts calls and compares the verdicts.
func TestMalformedInputIsNeverMorePermitted(t *testing.T) {
	t.Parallel()
	calls := map[string]json.RawMessage{
		"bash": bash("git status"), "wiki_write": page("handbook/a"), "write": file("reports/a"), "http_request": fetch("GET",
			"https://a.example/x"),
		"read": object("path", "x"), "request_secret": object("key_name", "X"), "unknown": object("a", "b"),
	}
	strict := map[permission.Verdict]int{permission.Allow: 0, permission.Ask: 1, permission.Deny: 2}
	rapid.Check(t, func(r *rapid.T) {
		for tool, input := range calls {
			spoiled := []byte(input)
			at := rapid.IntRange(0, len(spoiled)-1).Draw(r, "at")
			spoiled = append(append(append([]byte{}, spoiled[:at]...), rapid.SliceOfN(rapid.Byte(), 0, 3).Draw(r, "bytes")...),
				spoiled[min(len(spoiled), at+rapid.IntRange(0, 3).Draw(r, "gone")):]...)
			for _, scopes := range [][]string{nil, writer} {
				plain := permission.Rules{}.Judge(tool, input, scopes).Verdict
				if got := (permission.Rules{}).Judge(tool, spoiled, scopes).Verdict; strict[got] < strict[plain] {
					r.Fatalf("%s %s: %s, but %s is %s", tool, spoiled, got, input, plain)
				}
			}
		}
	})
}
