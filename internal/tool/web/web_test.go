package web_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/parley-server/parley/internal/redact"
	"github.com/parley-server/parley/internal/tool"
	"github.com/parley-server/parley/internal/tool/web"
)

// direct sends requests unchanged, with a placeholder for one credential.
type direct struct{ client *http.Client }

func (d direct) Do(_ tool.Call, req *http.Request) (*http.Response, error) { return d.client.Do(req) }

func (direct) Placeholder(_ context.Context, name string) (string, error) {
	if name != "API_TOKEN" {
		return "", tool.Refusal("This run has no credential " + name + ".")
	}
	return "ph_token", nil
}

func TestRequestIsSentAsItIsWritten(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("X-Trace", "t1")
		w.Header().Set("Set-Cookie", "id=1")
		w.WriteHeader(http.StatusCreated)
		json.NewEncoder(w).Encode(map[string]string{"method": r.Method, "query": r.URL.RawQuery, "auth": r.Header.Get("Authorization"),
			"type": r.Header.Get("Content-Type"), "agent": r.UserAgent(), "body": string(body)})
	}))
	defer srv.Close()
	for _, c := range []struct{ input, want string }{
		{`{"url":"%s/v1?a=b"}`, `"method":"GET","query":"a=b"`},
		{`{"url":"%s","headers":{"Authorization":"Bearer ${API_TOKEN}"}}`, `"auth":"Bearer ph_token"`},
		{`{"url":"%s/?key=${API_TOKEN}"}`, `"query":"key=ph_token"`},
		{`{"method":"POST","url":"%s","body":{"a":[1,"${API_TOKEN}"]}}`, `"body":"{\"a\":[1,\"ph_token\"]}"`},
		{`{"method":"POST","url":"%s","body":{"a":1}}`, `"type":"application/json"`},
		{`{"method":"POST","url":"%s","body":"a=b","headers":{"Content-Type":"application/x-www-form-urlencoded"}}`, `"body":"a=b"`},
		{`{"url":"%s","headers":{"Accept":"$HOME ${} $API_TOKEN"}}`, `"agent":"Parley"`},
	} {
		res := call(t, srv, strings.Replace(c.input, "%s", srv.URL, 1))
		if !res.OK || !strings.HasPrefix(res.Output, "HTTP 201 Created\nContent-Type: ") || !strings.Contains(res.Output, "X-Trace: t1\n\n{") {
			t.Errorf("%s: %v %s", c.input, res.OK, res.Output)
		}
		if !strings.Contains(res.Output, c.want) || strings.Contains(res.Output, "Cookie") {
			t.Errorf("%s: no %s in %s", c.input, c.want, res.Output)
		}
	}
}

func TestAnswersThatAreNoText(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/picture":
			w.Header().Set("Content-Type", "image/png")
			w.Write([]byte("\x89PNG\r\n\x00"))
		case "/long":
			w.Write([]byte(strings.Repeat("ä", 1<<20)))
		case "/gone":
			http.Error(w, "gone", http.StatusGone)
		case "/away":
			http.Redirect(w, r, "https://elsewhere.example/", http.StatusFound)
		}
	}))
	defer srv.Close()
	for path, want := range map[string]string{
		"/picture": "[the body is no text; it is not shown]",
		"/long":    "[cut here: the answer is longer than 1048576 bytes;",
		"/gone":    "HTTP 410 Gone\n",
		"/away":    "Location: https://elsewhere.example/\n",
	} {
		res := call(t, srv, `{"url":"`+srv.URL+path+`"}`)
		if !strings.Contains(res.Output, want) || res.OK != (path != "/gone") {
			t.Errorf("%s: %v %.200s", path, res.OK, res.Output)
		}
	}
}

// TestTheCutDoesNotDependOnMarks reads bodies with marks that stand for more or fewer bytes.
func TestTheCutDoesNotDependOnMarks(t *testing.T) {
	t.Parallel()
	for _, length := range []int{4, 9000} {
		for _, after := range []int{1<<20 - 10<<10, 1 << 20} {
			res := &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"text/plain"}}, Body: marked{length: length, after: after}}
			out, err := web.Describe(res)
			_, body, _ := strings.Cut(out, "\n\n")
			want := min(after, 1<<20-length)
			if err != nil || !strings.HasPrefix(body, "[secret:PIN]x") || strings.Count(body, "x") != want ||
				strings.Contains(out, "[cut here") != (want < after) {
				t.Errorf("%d and %d bytes: %v, %d bytes, want %d", length, after, err, strings.Count(body, "x"), want)
			}
		}
	}
}

// marked is a body that begins with a mark.
type marked struct {
	io.ReadCloser
	length, after int
}

func (m marked) WriteTo(dst io.Writer) (int64, error) {
	if err := dst.(redact.Marker).WriteMark("[secret:PIN]", m.length); err != nil {
		return 0, err
	}
	return io.Copy(dst, strings.NewReader(strings.Repeat("x", m.after)))
}

func TestRequestsThatCannotBeSent(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(http.NotFoundHandler())
	defer srv.Close()
	for input, want := range map[string]string{
		`{}`:                                   `"url" is required`,
		`{"url":7}`:                            `"url" must be a string`,
		`{"url":"http://[::1"}`:                `"url" is not an address`,
		`{"url":"https://a.b","method":"get"}`: `"method" is one of GET`,
		`{"url":"https://a.b","body":"x"}`:     "GET requests have no body",
		`{"url":"https://a.b","headers":{"A":"x\ny"}}`:                  "The header A is",
		`{"url":"https://a.b","headers":{"A B":"x"}}`:                   `The header "A B"`,
		`{"url":"https://a.b","headers":{"host":"c"}}`:                  "The header Host",
		`{"url":"https://a.b","headers":{"A":1}}`:                       `"headers/A" must be a string`,
		`{"url":"https://a.b","timeout_seconds":121}`:                   "1 to 120",
		`{"url":"https://a.b","headers":{"A":"${OTHER}"}}`:              "no credential OTHER",
		`{"url":"https://a.b/${OTHER}","method":"POST","body":{"a":1}}`: "no credential OTHER",
	} {
		if res := call(t, srv, input); res.OK || !strings.Contains(res.Output, want) {
			t.Errorf("%s: %v %q, want %q", input, res.OK, res.Output, want)
		}
	}
}

func call(t *testing.T, srv *httptest.Server, input string) tool.Result {
	t.Helper()
	client := srv.Client()
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	res, err := web.Tool(direct{client}).Call(t.Context(), tool.Call{Input: json.RawMessage(input)})
	if refusal, ok := err.(tool.Refusal); ok {
		return tool.Reject(string(refusal))
	}
	if err != nil {
		t.Fatal(err)
	}
	return res
}
