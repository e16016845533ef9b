package rest_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
)

// TestBadMessages checks that each body is rejected with exactly these violations, "param rule" in
// order, or with this code.
func TestBadMessages(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	long := strings.Repeat("x", 256)
	for body, want := range map[string]string{
		``:                                   "INVALID_JSON",
		` `:                                  "INVALID_JSON",
		`{`:                                  "INVALID_JSON",
		`{"command":"x"`:                     "INVALID_JSON",
		`{"command":"x"}}`:                   "INVALID_JSON",
		`{"command":"x"} {}`:                 "INVALID_JSON",
		`{"command":"x",}`:                   "INVALID_JSON",
		`{'command':'x'}`:                    "INVALID_JSON",
		`{command:"x"}`:                      "INVALID_JSON",
		`{"command":"x\"}`:                   "INVALID_JSON",
		"{\"command\":\"\x01\"}":             "INVALID_JSON",
		"{\"command\":\"\xff\"}":             "INVALID_JSON",
		"\ufeff{\"command\":\"x\"}":          "INVALID_JSON",
		`{"command":"x"}` + "\x00":           "INVALID_JSON",
		`{"command":NaN}`:                    "INVALID_JSON",
		`{"command":01}`:                     "INVALID_JSON",
		`{"command":"a","command":"b"}`:      "INVALID_JSON",
		`{"command":"a","comm\u0061nd":"b"}`: "INVALID_JSON",
		`{"command":"a","limits":{"max_turns":1,"max_turns":2}}`:                "INVALID_JSON",
		`{"command":"a","x":[{"y":{"z":1,"z":2}}]}`:                             "INVALID_JSON",
		`{"command":` + strings.Repeat("[", 65) + strings.Repeat("]", 65) + `}`: "INVALID_JSON",
		strings.Repeat("[", 20000):                                              "INVALID_JSON",
		strings.Repeat(`{"a":`, 9000):                                           "INVALID_JSON",
		`null`:                                                                  " type",
		`[]`:                                                                    " type",
		`"command"`:                                                             " type",
		`1e999999`:                                                              " type",
		`{}`:                                                                    "/command exactly_one",
		`{"command":null}`:                                                      "/command exactly_one",
		`{"command":1}`:                                                         "/command type",
		`{"command":["x"]}`:                                                     "/command type",
		`{"command":""}`:                                                        "/command min_length",
		`{"command":" \n\t"}`:                                                   "/command min_length",
		`{"command":"` + strings.Repeat("x", 200_001) + `"}`:                                "/command max_length",
		`{"command":"x","caller_id":1}`:                                                     "/caller_id type",
		`{"command":"x","caller_id":""}`:                                                    "/caller_id min_length",
		`{"command":"x","caller_id":"` + long + `"}`:                                        "/caller_id max_length",
		`{"command":"x","caller_id":"` + strings.Repeat("é", 128) + `"}`:                    "/caller_id max_length",
		`{"command":"x","caller_id":"a\u0000"}`:                                             "/caller_id format",
		`{"command":"x","caller_id":"a\ud800"}`:                                             "/caller_id format",
		`{"command":"x","caller_id":"\udfff\ud800"}`:                                        "/caller_id format",
		`{"command":"x","caller_id":"\ud800\ud800\udc00"}`:                                  "/caller_id format",
		`{"command":"x","session_id":"x"}`:                                                  "/session_id format",
		`{"command":"x","session_id":"{` + uuid.NewString() + `}"}`:                         "/session_id format",
		`{"command":"x","session_id":"` + uuid.Nil.String() + `"}`:                          "/session_id format",
		`{"command":"x","stream":"false"}`:                                                  "/stream type",
		`{"command":"x","stream":0}`:                                                        "/stream type",
		`{"command":"x","limits":[]}`:                                                       "/limits type",
		`{"command":"x","limits":{"max_turns":"1"}}`:                                        "/limits/max_turns type",
		`{"command":"x","limits":{"max_turns":1.5}}`:                                        "/limits/max_turns type",
		`{"command":"x","limits":{"max_turns":0}}`:                                          "/limits/max_turns minimum",
		`{"command":"x","limits":{"max_turns":-1e999999}}`:                                  "/limits/max_turns minimum",
		`{"command":"x","limits":{"max_turns":201}}`:                                        "/limits/max_turns maximum",
		`{"command":"x","limits":{"max_response_seconds":1e999999}}`:                        "/limits/max_response_seconds maximum",
		`{"command":"x","limits":{"max_cost_usd":"1"}}`:                                     "/limits/max_cost_usd type",
		`{"command":"x","limits":{"max_cost_usd":-1}}`:                                      "/limits/max_cost_usd minimum",
		`{"command":"x","limits":{"max_cost_usd":1e999999}}`:                                "/limits/max_cost_usd maximum",
		`{"command":"x","skill":"y"}`:                                                       "/skill exactly_one",
		`{"command":"x","input":{}}`:                                                        "/input requires",
		`{"skill":""}`:                                                                      "/skill min_length",
		`{"skill":"a\u0000"}`:                                                               "/skill format",
		`{"skill":"x","input":[]}`:                                                          "/input type",
		`{"skill":"x","input":{"k":"` + strings.Repeat("v", 256<<10) + `"}}`:                "/input max_length",
		`{"command":"x","secret_input":"A"}`:                                                "/secret_input type",
		`{"command":"x","secret_input":[1,""]}`:                                             "/secret_input/0 type, /secret_input/1 min_length",
		`{"command":"x","secret_input":["` + strings.Repeat(`A","`, 20) + `A"]}`:            "/secret_input max_items",
		`{"command":"x","response_schema":true}`:                                            "/response_schema type",
		`{"command":"x","response_schema":{"title":"` + strings.Repeat("v", 64<<10) + `"}}`: "/response_schema max_length",
		`{"command":"x","callback":7}`:                                                      "/callback type",
		`{"command":"x","callback":{}}`:                                                     "/callback/url required",
		`{"command":"x","callback":{"url":""}}`:                                             "/callback/url min_length",
		`{"command":"x","callback":{"url":"u","metadata":{"k":1},"x":0}}`:                   "/callback/metadata/k type, /callback/x unknown",
		`{"command":"x","attachments":[{},{"file_id":"x"},7,{"file_id":"` + uuid.NewString() +
			`","x":1}]}`: "/attachments/0/file_id required, /attachments/1/file_id format, /attachments/2 type, /attachments/3/x unknown",
		`{"command":"x","effort":"huge"}`:             "/effort enum",
		`{"command":"x","multitask_strategy":"wait"}`: "/multitask_strategy enum",
		`{"command":"x","a/b~c":1}`:                   "/a~1b~0c unknown",
		`{"command":"x","\u0000":1}`:                  "/\x00 unknown",
		`{"Command":"x"}`:                             "/Command unknown, /command exactly_one",
		`{"command":7,"caller_id":"","stream":1,"limits":{"max_turns":0,"x":1},"session_id":"s","zzz":0}`: "/command type, /caller_id " +
			"min_length, /stream type, /limits/max_turns minimum, /limits/x unknown, /session_id format, /zzz unknown",
	} {
		r := s.get(t, call{method: "POST", path: "messages", body: body, header: []string{"Content-Type", "application/json"}})
		var got []string
		for _, v := range r.Error.Violations {
			if v.Message == "" {
				t.Errorf("%.80s: %+v without a message", body, v)
			}
			got = append(got, v.Param+" "+v.Rule)
		}
		have := strings.Join(got, ", ")
		if have == "" {
			have = r.Error.Code
		} else if r.Error.Code != "INVALID_REQUEST" {
			t.Errorf("%.80s: %s with violations", body, r.Error.Code)
		}
		if r.status != 400 || have != want || r.Error.Type != "invalid_request_error" || len(r.text) > 8<<10 {
			t.Errorf("%.80s\n\tgot  %d %s\n\twant %s\n\t%.300s", body, r.status, have, want, r.text)
		}
	}
	if r := s.get(t, call{path: "sessions"}); string(r.Data) != "[]" {
		t.Errorf("refused messages left %s", r.Data)
	}
}

// TestDepth checks that the error for a nested body names the same limit at every depth, and that
// brackets in a string do not count.
func TestDepth(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	nested := func(n int) string {
		return `{"command":"x","x":` + strings.Repeat(`[{"y":`, n/2) + "1" + strings.Repeat("}]", n/2) + "}"
	}
	for levels, code := range map[int]string{62: "INVALID_REQUEST", 64: "INVALID_JSON", 10_000: "INVALID_JSON", 100_000: "INVALID_JSON"} {
		r := s.get(t, call{method: "POST", path: "messages", body: nested(levels)})
		if r.status != 400 || r.Error.Code != code || code == "INVALID_JSON" && r.Error.Message != "The body is nested deeper than 64 levels." {
			t.Errorf("%d: %d %s", levels, r.status, r.text)
		}
	}
	if r := s.get(t, call{method: "POST", path: "messages",
		body: strings.Repeat("[", 100_000)}); r.Error.Message != "The body is nested deeper than 64 levels." {
		t.Errorf("without an end: %s", r.text)
	}
	s.ask(t, body(t, strings.Repeat(`[{\"`, 1000), `"stream":false`))
}

func TestUnknownFieldsAreExplained(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	for field, want := range map[string]string{"comand": "command", "callerId": "caller_id", "sesion_id": "session_id", "streams": "stream",
		"quatsch": ""} {
		r := s.get(t, call{method: "POST", path: "messages", body: body(t, "x", `"`+field+`":1`)})
		if len(r.Error.Violations) != 1 || r.Error.Violations[0].Suggestion != want || len(r.Error.Violations[0].Allowed) != 18 ||
			r.Error.Param != field {
			t.Errorf("%s: %s", field, r.text)
		}
	}
	var many strings.Builder
	many.WriteString(`{"command":"x","` + strings.Repeat("y", 300) + `":1`)
	for i := range 9_000 {
		fmt.Fprintf(&many, `,"f%d":1`, i)
	}
	many.WriteString("}")
	if r := s.get(t, call{method: "POST", path: "messages", body: many.String()}); r.status != 400 || len(r.Error.Violations) != 100 ||
		len(r.text) > 64<<10 {
		t.Errorf("%d, %d violations, %d bytes", r.status, len(r.Error.Violations), len(r.text))
	}
}

func TestContentTypeAndSize(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	const message = `{"command":"@text 1 delta","stream":false}`
	for header, status := range map[string]int{
		"application/json": 200, "application/json; charset=utf-8": 200, "Application/JSON;charset=UTF-8": 200,
		"": 415, "text/plain": 415, "application/json; charset=latin1": 415, "application/x-www-form-urlencoded": 415, "application/jsonp": 415,
		"application/json, text/plain": 415, "application/vnd.api+json": 415, "/": 415,
	} {
		if r := s.get(t, call{method: "POST", path: "messages", body: message, header: []string{"Content-Type",
			header}}); r.status != status || status == 415 && r.Error.Code != "UNSUPPORTED_MEDIA_TYPE" {
			t.Errorf("Content-Type %q: %d %s", header, r.status, r.text)
		}
	}
	if r := s.get(t, call{method: "POST", path: "messages", body: message, header: []string{"Content-Encoding", "gzip"}}); r.status != 415 {
		t.Errorf("compressed: %d", r.status)
	}
	pad := func(n int) string { return message + strings.Repeat(" ", n-len(message)) }
	if r := s.get(t, call{method: "POST", path: "messages", body: pad(1 << 20)}); r.status != 200 {
		t.Errorf("1 MiB: %d %s", r.status, r.text)
	}
	if r := s.get(t, call{method: "POST", path: "messages", body: pad(1<<20 + 1)}); r.status != 413 || r.Error.Code != "PAYLOAD_TOO_LARGE" {
		t.Errorf("one byte more: %d %s", r.status, r.text)
	}
	chunked := s.request(t, call{method: "POST", path: "messages", body: "x"})
	chunked.Body, chunked.ContentLength = io.NopCloser(strings.NewReader(pad(1<<20+1))), -1
	res, err := s.client.Do(chunked)
	if err != nil {
		t.Fatal(err)
	}
	if res.Body.Close(); res.StatusCode != 413 {
		t.Errorf("without a length: %d", res.StatusCode)
	}
}

// TestNullEqualsAbsent checks that an explicit null equals an absent member, at every depth and in
// every body.
func TestNullEqualsAbsent(t *testing.T) {
	t.Parallel()
	s := startTurns(t, nil, asking(time.Hour))
	for _, fields := range []string{
		`"skill":null,"input":null,"secret_input":null,"caller_id":null,"session_id":null,"response_schema":null,"callback":null,` +
			`"attachments":null,"multitask_strategy":null,"effort":null,"limits":null,"idempotency_key":null`,
		`"limits":{"max_turns":null,"max_response_seconds":null,"max_cost_usd":null}`,
	} {
		if r := s.get(t, call{method: http.MethodPost, path: "messages", body: body(t, "@say x", fields,
			`"stream":false`)}); r.status != http.StatusOK {
			t.Errorf("%s: %d %s", fields, r.status, r.text)
		}
	}
	if frames := s.say(t, "@say x", `"stream":null`).rest(); len(frames) == 0 {
		t.Error("stream:null does not stream")
	}
	ask := s.say(t, "@call gate {}").until("input_required")
	var q struct {
		ApprovalID string `json:"approval_id"`
	}
	if err := json.Unmarshal([]byte(ask[len(ask)-1].data), &q); err != nil {
		t.Fatal(err)
	}
	decide := call{method: http.MethodPost, path: "/api/workspaces/demo/approvals/" + q.ApprovalID + "/decide",
		body: `{"decision":"deny","allowlist_pattern":null,"reason":null}`}
	if r := s.get(t, decide); r.status != http.StatusOK {
		t.Errorf("a decision: %d %s", r.status, r.text)
	}
	if r := s.get(t, call{method: http.MethodPost, path: "files",
		body: `{"filename":"a.txt","mime":"text/plain","size":1,"sha256":null,"origin_url":null}`}); r.status != http.StatusCreated {
		t.Errorf("a ticket: %d %s", r.status, r.text)
	}
}

// TestNamesAreExactAndDistinct checks that a member's name must match exactly and appear once.
func TestNamesAreExactAndDistinct(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	for text, want := range map[string]string{
		`{"COMMAND":"x"}`:                                        "INVALID_REQUEST",
		`{"command":"x","Command":"y"}`:                          "INVALID_REQUEST",
		`{"command":"x","command":"y"}`:                          "INVALID_JSON",
		`{"command":"x","limits":{"Max_turns":1}}`:               "INVALID_REQUEST",
		`{"command":"x","limits":{"max_turns":1,"max_turns":2}}`: "INVALID_JSON",
	} {
		if r := s.get(t, call{method: http.MethodPost, path: "messages", body: text}); r.status != http.StatusBadRequest || r.Error.Code != want {
			t.Errorf("%s: %d %s", text, r.status, r.text)
		}
	}
}
