package rest_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/parley-server/parley/internal/testing/wait"
)

func TestEveryPathKnowsItsMethods(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	id := uuid.NewString()
	for path, allow := range map[string]string{
		"messages":                     "OPTIONS, POST",
		"sessions":                     "GET, HEAD, OPTIONS",
		"sessions/" + id + "/messages": "GET, HEAD, OPTIONS",
		"sessions/" + id + "/events":   "GET, HEAD, OPTIONS",
		"sessions/" + id + "/cancel":   "OPTIONS, POST",
		"files":                        "GET, HEAD, OPTIONS, POST",
		"files/download":               "OPTIONS, POST",
		"files/" + id:                  "GET, HEAD, OPTIONS",
		"/api/v1/openapi":              "GET, HEAD, OPTIONS",
		"/healthz":                     "GET, HEAD, OPTIONS",
		"/readyz":                      "GET, HEAD, OPTIONS",
		"/healthz/stream":              "GET, HEAD, OPTIONS",
		"ag-ui":                        "OPTIONS, POST",
		"ui/chat":                      "OPTIONS, POST",
		"ui/chat/c/stream":             "DELETE, GET, HEAD, OPTIONS",
		"/mcp":                         "OPTIONS, POST",
		"/a2a":                         "OPTIONS, POST",
		"/.well-known/agent-card.json": "GET, HEAD, OPTIONS",
		"/openai/v1/models":            "GET, HEAD, OPTIONS",
		"/openai/v1/models/demo/x":     "GET, HEAD, OPTIONS",
		"/openai/v1/chat/completions":  "OPTIONS, POST",
		"/openai/v1/responses":         "OPTIONS, POST",
		"/openai/v1/completions":       "OPTIONS, POST",
		"/openai/v1/responses/x":       "DELETE, GET, HEAD, OPTIONS",
		"/v1/responses/x/cancel":       "OPTIONS, POST",
		"/v1/responses":                "OPTIONS, POST",
	} {
		for _, method := range []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "PROPFIND", "get"} {
			r := s.get(t, call{method: method, path: path, key: "-"})
			switch {
			case method == "OPTIONS":
				if r.status != 204 || r.header.Get("Allow") != allow || r.text != "" {
					t.Errorf("OPTIONS %s: %d, Allow %q", path, r.status, r.header.Get("Allow"))
				}
			case strings.Contains(allow, method):
				if r.status == 405 || r.status == 404 {
					t.Errorf("%s %s: %d", method, path, r.status)
				}
			default:
				if r.status != 405 || r.header.Get("Allow") != allow || method != "HEAD" && r.Error.Code != "METHOD_NOT_ALLOWED" {
					t.Errorf("%s %s: %d, Allow %q, %s", method, path, r.status, r.header.Get("Allow"), r.text)
				}
			}
		}
	}
}

func TestHEADIsGETWithoutABody(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	st := s.say(t, held)
	id := sessionOf(t, st.until("open")[0])
	s.Gate.Await(t)
	for _, path := range []string{"sessions", "sessions/" + id + "/messages", "sessions/" + id + "/events", "/healthz", "/readyz",
		"/api/v1/openapi"} {
		r := s.get(t, call{method: "HEAD", path: path}) // a stream would not end
		if r.status != 200 || r.text != "" || r.header.Get("Content-Type") == "" {
			t.Errorf("%s: %d %v", path, r.status, r.header)
		}
	}
	if r := s.get(t, call{method: "HEAD", path: "sessions/" + uuid.NewString() + "/events"}); r.status != 404 {
		t.Errorf("HEAD of no session: %d", r.status)
	}
	s.Gate.Leave <- struct{}{}
	st.rest()
}

// TestHostilePaths checks that every path gets an error envelope, never a redirect or a 500.
func TestHostilePaths(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	id := uuid.NewString()
	for _, path := range []string{
		"/", "//", "/api", "/api/v1", "/api/v1/", "/api/v1/openapi/", "/api//v1/openapi", "/api/v1/../v1/openapi", "/api/v1/./openapi",
		"/%61pi/v1/openapi/x",
		"/api/v1/workspaces/", "/api/v1/workspaces//sessions", "/api/v1/workspaces/demo/", "/api/v1/workspaces/demo/sessions/",
		"/api/v1/workspaces/demo/sessions//events", "/api/v1/workspaces/demo%2Fsessions", "/api/v1/workspaces/demo/sessions/%2F..%2F..%2F/events",
		"/api/v1/workspaces/%00/sessions", "/api/v1/workspaces/%ff/sessions", "/api/v1/workspaces/demo%00/sessions",
		"/api/v1/workspaces/%E2%80%AE/sessions",
		"/api/v1/workspaces/demo/sessions/%00/events", "/api/v1/workspaces/demo/sessions/%ff/messages",
		"/api/v1/workspaces/demo/sessions/" + id + "%00/events",
		"/api/v1/workspaces/demo/sessions/{" + id + "}/events", "/api/v1/workspaces/demo/sessions/urn:uuid:" + id + "/events",
		"/api/v1/workspaces/demo/sessions/" + strings.ReplaceAll(id, "-", "") + "/messages",
		"/api/v1/workspaces/demo/sessions/" + strings.Repeat("a", 10<<10) + "/events",
		"/api/v1/workspaces/" + strings.Repeat("a", 10<<10) + "/sessions", "/api/v1/workspaces/../demo/sessions",
		"/api/v1/workspaces/demo/sessions/../sessions",
		"/api/v1/workspaces/'%20OR%201=1--/sessions", "/api/v1/WORKSPACES/demo/sessions", "/API/v1/openapi", "/api/v2/openapi", "/healthz/",
		"/favicon.ico", "/.env",
	} {
		for _, method := range []string{"GET", "POST"} {
			r := s.get(t, call{method: method, path: path, body: map[string]string{"POST": `{"command":"x"}`}[method]})
			if r.status != 404 && (r.status != 405 || method == "GET") || r.Error.Code == "" || r.RequestID != r.header.Get("X-Request-Id") {
				t.Errorf("%s %.80s: %d %.200s", method, path, r.status, r.text)
			}
		}
	}
	for _, query := range []string{
		"?last_event_id=" + strings.Repeat("9", 10<<10), "?last_event_id=%00", "?last_event_id=%ff", "?last_event_id=%zz", "?%", "?a;b",
		"?last_event_id=1;2",
	} {
		if r := s.get(t, call{path: "sessions/" + id + "/events" + query}); r.status != 400 || r.Error.Code != "INVALID_CURSOR" {
			t.Errorf("events%.60s: %d %.200s", query, r.status, r.text)
		}
	}
}

func TestRequestID(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	for _, path := range []string{"sessions", "/nowhere", "/healthz"} {
		for _, id := range []string{"a", "my request/17", strings.Repeat("x", 128), "~!@#$%^&*()"} {
			if r := s.get(t, call{path: path, header: []string{"X-Request-Id", id}}); r.header.Get("X-Request-Id") != id ||
				r.status == 404 && r.RequestID != id {
				t.Errorf("%q became %q and %q", id, r.header.Get("X-Request-Id"), r.RequestID)
			}
		}
		for _, id := range []string{"", strings.Repeat("x", 129), "é", "a\tb"} {
			got := s.get(t, call{path: path, header: []string{"X-Request-Id", id}}).header.Get("X-Request-Id")
			if got == id || !strings.HasPrefix(got, "req_") || len(got) > 128 {
				t.Errorf("%q became %q", id, got)
			}
		}
	}
}

func TestAnswersAreNotForCaches(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	for _, c := range []call{{path: "sessions"}, {path: "sessions", key: "-"}, {path: "/nowhere"}, {path: "/healthz"}} {
		if r := s.get(t, c); r.header.Get("Cache-Control") != "no-store" || r.header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: %v", c.path, r.header)
		}
	}
}

func TestAccept(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	st := s.say(t, "@text 1 delta")
	id := sessionOf(t, st.rest()[0])
	const stream, blocking = `{"command":"@text 1 delta"}`, `{"command":"@text 1 delta","stream":false}`
	for _, c := range []struct {
		path, body, accept string
		status             int
	}{
		{"sessions", "", "application/json", 200},
		{"sessions", "", "text/html, */*;q=0.1", 200},
		{"sessions", "", "application/*", 200},
		{"sessions", "", "text/html", 406},
		{"sessions", "", "*/*, application/json;q=0", 406},
		{"sessions", "", ";;;", 406},
		{"sessions/" + id + "/events", "", "text/event-stream", 200},
		{"sessions/" + id + "/events", "", "*/*", 200},
		{"sessions/" + id + "/events", "", "application/json", 406},
		{"messages", stream, "text/event-stream", 200},
		{"messages", stream, "application/json, text/plain, */*", 200},
		{"messages", stream, "application/json", 406},
		{"messages", blocking, "application/json", 200},
		{"messages", blocking, "text/event-stream", 406},
		{"messages", blocking, "image/png", 406},
		{"/api/v1/openapi", "", "text/yaml", 406},
	} {
		method := "GET"
		if c.body != "" {
			method = "POST"
		}
		r := s.get(t, call{method: method, path: c.path, body: c.body, header: []string{"Accept", c.accept}})
		if r.status != c.status || c.status == 406 && r.Error.Code != "NOT_ACCEPTABLE" {
			t.Errorf("%s with Accept %q: %d %s", c.path, c.accept, r.status, r.text)
		}
		way, could := map[string]string{"application/json": `With "stream":false it is`,
			"text/event-stream": `With "stream":true it is`}[c.accept]
		if c.status == 406 && c.body != "" && could && !strings.Contains(r.Error.Message, way) {
			t.Errorf("%s with Accept %q: %s", c.path, c.accept, r.Error.Message)
		}
	}
}

// TestConnectionsAreUsedAgain checks that a connection is reused after a stream, whose deadline
// must not remain.
func TestConnectionsAreUsedAgain(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	read := bufio.NewReader(conn)
	for range 3 {
		for _, c := range []call{{method: "POST", path: "messages", body: `{"command":"@text 1 delta"}`}, {path: "sessions"},
			{path: "/nowhere"}, {method: "OPTIONS", path: "/healthz"}} {
			req := s.request(t, c)
			if err := req.Write(conn); err != nil {
				t.Fatal(err)
			}
			res, err := http.ReadResponse(read, req)
			if err != nil {
				t.Fatalf("%s: %v", c.path, err)
			}
			if _, err := io.Copy(io.Discard, res.Body); err != nil || res.Close {
				t.Errorf("%s: %v, close %v", c.path, err, res.Close)
			}
			res.Body.Close()
		}
	}
}

// TestRawRequests sends requests that net/http itself would accept, or reject in its own format.
func TestRawRequests(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	for request, want := range map[string]int{
		"GET http://elsewhere/api/v1/openapi HTTP/1.1\r\nHost: elsewhere\r\n\r\n": 200,
		"GET /api/v1/openapi?%zz HTTP/1.1\r\nHost: x\r\n\r\n":                     400,
		"GET \\ HTTP/1.1\r\nHost: x\r\n\r\n":                                      400,
		"GET /nowhere HTTP/1.0\r\n\r\n":                                           404,
		fmt.Sprintf(
			"POST /api/v1/workspaces/demo/messages HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Type: "+
				"application/json\r\nContent-Length: 100\r\nExpect: 100-continue\r\n\r\n", "bad"): 401,
	} {
		conn, err := net.Dial("tcp", strings.TrimPrefix(s.URL, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(conn, request); err != nil {
			t.Fatal(err)
		}
		res, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil || res.StatusCode != want {
			t.Errorf("%q: %v, %v", request, res, err)
		}
		conn.Close()
	}
}

// TestHeaderLimit compares net/http's own limit and response with the documented ones.
func TestHeaderLimit(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	limits, _ := document(t, s).Extensions["x-limits"].(map[string]any)
	taken, refused := int(limits["header_bytes"].(float64)), int(limits["header_bytes_refused"].(float64))
	const head = "GET /healthz HTTP/1.1\r\nHost: x\r\nX-Fill: "
	for size, want := range map[int]int{taken: 200, refused: 200, refused + 1: 431} {
		conn, err := net.Dial("tcp", strings.TrimPrefix(s.URL, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		go func() { _, _ = io.WriteString(conn, head+strings.Repeat("x", size-len(head)-4)+"\r\n\r\n") }()
		res, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil || res.StatusCode != want {
			t.Errorf("%d bytes: %v, %v", size, res, err)
		} else if want == 431 && (!strings.HasPrefix(res.Header.Get("Content-Type"), "text/plain") || res.Header.Get("X-Request-Id") != "") {
			t.Errorf("%v", res.Header)
		}
		conn.Close()
	}
}

func TestHealth(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	s.say(t, "@text 1 delta").rest()
	for _, path := range []string{"/healthz", "/readyz"} {
		if r := s.get(t, call{path: path, key: "-"}); r.status != 200 || strings.TrimSpace(r.text) != `{"status":"ok"}` {
			t.Errorf("%s: %d %s", path, r.status, r.text)
		}
	}
	s.link.cut()
	if r := s.get(t, call{path: "/healthz", key: "-"}); r.status != 200 {
		t.Errorf("alive without a database: %d", r.status)
	}
	if r := s.get(t, call{path: "/readyz", key: "-"}); r.status != 503 || r.Error.Code != "UNAVAILABLE" || r.header.Get("Retry-After") == "" {
		t.Errorf("ready without a database: %d %s", r.status, r.text)
	}
}

// TestDatabaseAway checks that without the database every call that needs it fails with a clear
// error, and that calls succeed again soon after the database returns.
func TestDatabaseAway(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	s.say(t, "@text 1 delta").rest()
	s.link.cut()
	// A verified key and its workspace are known for 750 ms: until then this request needs no
	// database.
	unknown := call{method: "POST", path: "/openai/v1/chat/completions",
		body: `{"model":"none","messages":[{"role":"user","content":"hello"}]}`}
	wait.For(t, "the key has to be read again", func() bool { return s.get(t, unknown).status == 503 })
	for _, op := range s.operations(t) {
		r := s.get(t, op.call("demo", nothing()))
		if r.status != 503 || r.Error.Code != "UNAVAILABLE" || r.Error.Type != "api_error" || r.header.Get("Retry-After") == "" ||
			r.Error.RetryAfter < 1 {
			t.Errorf("%s: %d %s", op, r.status, r.text)
		}
		if bytes.Contains([]byte(r.text), []byte("dial")) {
			t.Errorf("%s exposes too much: %s", op, r.text)
		}
	}
	s.link.mend()
	if r := s.get(t, call{path: "sessions"}); r.status != 200 {
		t.Errorf("afterwards: %d %s", r.status, r.text)
	}
}
