package rest

import (
	"encoding/json"
	"net/http"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/server"
	"github.com/parley-server/parley/internal/server/request"
	"github.com/parley-server/parley/internal/server/rest/document"
)

// FuzzMessage checks that any body yields a message or a reportable fault, and that a message keeps
// its meaning when it is encoded again.
func FuzzMessage(f *testing.F) {
	for _, s := range []string{
		`{"command":"x"}`, `{"command":"a\u0000\ud800\udc00","caller_id":"é","stream":false}`,
		`{"command":"x","limits":{"max_turns":1e0,"max_response_seconds":5}}`,
		`{"command":"x","session_id":"01902f0e-7b1e-7cc0-8a3a-2f6f0f1b7f10"}`, `[]`, `null`, `{"a":{"b":[1,2,{"c":null}]}}`,
		`{"":1,"\u0000":2}`, `{"command":"\ud800"}`,
		`{"caller_id":"\\u0000"}`, `{"caller_id":"\ud800\\udc00"}`, `{"command":1e999999}`, strings.Repeat("[", 70), "{\"command\":\"\xff\"}",
	} {
		f.Add([]byte(s), "key")
	}
	f.Fuzz(func(t *testing.T, body []byte, once string) {
		list, err := request.Object(body)
		var m request.Message
		if err == nil {
			m, err = parseMessage(&request.Checks{}, list, http.Header{"Idempotency-Key": {once}})
		}
		if err != nil {
			tellable(t, err)
			return
		}
		again := map[string]any{"command": m.Command, "stream": m.Stream}
		if m.CallerID != "" {
			again["caller_id"] = m.CallerID
		}
		if m.Session.String() != "00000000-0000-0000-0000-000000000000" {
			again["session_id"] = m.Session
		}
		limits := map[string]int{}
		if m.Limits.MaxTurns != 0 {
			limits["max_turns"] = m.Limits.MaxTurns
		}
		if m.Limits.MaxResponseSeconds != 0 {
			limits["max_response_seconds"] = m.Limits.MaxResponseSeconds
		}
		again["limits"] = limits
		data, err := json.Marshal(again)
		if err != nil {
			t.Fatal(err)
		}
		if list, err = request.Object(data); err != nil {
			t.Fatalf("%s: %v", data, err)
		}
		if got, err := parseMessage(&request.Checks{}, list, http.Header{"Idempotency-Key": {once}}); err != nil || !reflect.DeepEqual(got, m) {
			t.Fatalf("%+v became %+v, %v", m, got, err)
		}
	})
}

func tellable(t *testing.T, err error) {
	t.Helper()
	f := fault.From(err)
	if f == nil || f.Message == "" || f.Code.Status() != 400 {
		t.Fatalf("%#v", err)
	}
	data, err := json.Marshal(f.Detail)
	if err != nil || !json.Valid(data) {
		t.Fatalf("%s, %v", data, err)
	}
}

// FuzzCursor checks that a cursor is accepted exactly if it is Go's decimal form of the number.
func FuzzCursor(f *testing.F) {
	for _, s := range []string{"0", "1", "9223372036854775807", "9223372036854775808", "01", "+1", "-0", "", " 1", "1_0", "0x1", "١"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		n, given, err := server.ParseCursor("last_event_id", []string{s})
		want, parseErr := strconv.ParseInt(s, 10, 64)
		if valid := parseErr == nil && want >= 0 && strconv.FormatInt(want, 10) == s; valid != (err == nil) {
			t.Fatalf("%q: %d, %v", s, n, err)
		}
		if err == nil && (n != want || !given) {
			t.Fatalf("%q: %d, %v", s, n, given)
		}
		if err != nil {
			tellable(t, err)
		}
	})
}

// TestDocumentMustFitTheHandlers checks that the service does not start unless the document, the
// handlers and the scopes agree.
func TestDocumentMustFitTheHandlers(t *testing.T) {
	t.Parallel()
	s := &api{}
	handlers := s.handlers()
	whole, err := parseOpenAPI()
	if err != nil {
		t.Fatal(err)
	}
	if _, ops, err := loadDocument(whole, server.Config{Version: "1"}, handlers); err != nil || len(ops) != len(handlers) {
		t.Fatalf("%d operations for %d handlers, %v", len(ops), len(handlers), err)
	}
	more := s.handlers()
	more["extra"] = s.getHealth
	delete(more, "cancelTurn")
	_, _, err = loadDocument(whole, server.Config{Version: "1"}, more)
	for _, want := range []string{`handler "extra" has no operation`, `/cancel: no handler for operation "cancelTurn"`} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v lacks %q", err, want)
		}
	}
	for change, want := range map[[2]string]string{
		{"x-scope: chat", "x-scope: chatter"}:                      `unknown x-scope "chatter"`,
		{"x-scope: chat", "x-scopes: chat"}:                        `unknown x-scope ""`,
		{"operationId: listMessages", "operationId: listSessions"}: `operation "listSessions" is there twice`,
		{"openapi: 3.1.0", "openapi: [3.1.0"}:                      "parse the OpenAPI document",
		{"operationId: health", "operationId: [health]"}:           "/healthz",
		{"x-served-by: mcp", "x-serves: mcp"}:                      `no handler for operation "callMCP"`,
		{"x-scope: chat", "x-scope: chat\n      x-served-by: mcp"}: `operation "sendMessage" has a handler here, and mcp serves it`,
		{"paths:", "path:"}:                                        `handler "sendMessage" has no operation`,
	} {
		d, err := document.Parse([]byte(strings.Replace(string(openapi), change[0], change[1], 1)))
		if err == nil {
			_, _, err = loadDocument(d, server.Config{Version: "1"}, handlers)
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v lacks %q", change[1], err, want)
		}
	}
	doc, _, err := loadDocument(whole, server.Config{Version: "1", BaseURL: "https://chat.example/parley/"}, handlers)
	if err != nil || !strings.Contains(string(doc.JSON), `"servers":[{"url":"https://chat.example/parley","description":"This server."}]`) {
		t.Errorf("the public address is missing: %v", err)
	}
}
