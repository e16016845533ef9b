package rest_test

import (
	"strings"
	"testing"
)

// TestUnknownParameters checks that every operation of the API rejects an undocumented parameter
// and changes nothing; the probes of a load balancer accept any.
func TestUnknownParameters(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	id := sessionOf(t, s.say(t, "@text 1 delta").rest()[0])
	calls := []call{{path: "/api/v1/openapi"}}
	for _, op := range s.operations(t) {
		if op.servedBy == "" { // protocols define no parameters, and ignore them
			calls = append(calls, op.call("demo", nothing()))
		}
	}
	for _, op := range calls {
		path := op.path
		op.path = path + "?quatsch=1"
		r := s.get(t, op)
		if r.status != 400 || r.Error.Code != "INVALID_REQUEST" || r.Error.Param != "quatsch" || len(r.Error.Violations) != 1 ||
			r.Error.Violations[0].Rule != "unknown" {
			t.Errorf("%s %s: %d %s", op.method, op.path, r.status, r.text)
		}
		if strings.HasSuffix(path, "/events") {
			continue // its invalid queries are INVALID_CURSOR
		}
		op.path = path + "?a=%zz"
		if r := s.get(t, op); r.status != 400 || r.Error.Code != "INVALID_REQUEST" || r.Error.Param != "query" {
			t.Errorf("%s %s: %d %s", op.method, op.path, r.status, r.text)
		}
	}
	for path, want := range map[string]string{
		"sessions?callerid=anna": "caller_id", "sessions?Limit=1": "limit", "sessions/" + id + "/messages?oder=asc": "order",
		"sessions/" + id + "/events?last_eventid=1": "last_event_id", "sessions/" + id + "/messages?caller_id=anna": "",
	} {
		if r := s.get(t, call{path: path}); r.status != 400 || len(r.Error.Violations) != 1 || r.Error.Violations[0].Suggestion != want {
			t.Errorf("%s: %d %s", path, r.status, r.text)
		}
	}
	if r := s.get(t, call{method: "POST", path: "messages?stream=false", body: `{"comand":"x"}`}); r.status != 400 ||
		len(r.Error.Violations) != 3 {
		t.Errorf("an invalid query and an invalid body: %d %s", r.status, r.text)
	}
	for _, path := range []string{"/healthz?x=1", "/readyz?%zz"} {
		if r := s.get(t, call{path: path, key: "-"}); r.status != 200 {
			t.Errorf("%s: %d %s", path, r.status, r.text)
		}
	}
	if list, _ := s.pages(t, "sessions?limit=10"); len(list) != 1 {
		t.Errorf("refused calls left %+v", list)
	}
}
