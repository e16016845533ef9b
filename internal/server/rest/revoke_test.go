package rest_test

import (
	"testing"

	"github.com/parley-server/parley/internal/store/apikey"
	"github.com/parley-server/parley/internal/testing/wait"
)

// TestARevokedKeyLosesItsStreamsEverywhere revokes a key on one replica. On every replica its
// streams close without done and its blocking calls return that the key is revoked; their turns
// continue.
func TestARevokedKeyLosesItsStreamsEverywhere(t *testing.T) {
	t.Parallel()
	here := start(t, nil)
	there := here.replica(t, nil)
	grant := apikey.Grant{Workspace: here.Workspace.ID, Name: "doomed", Scopes: apikey.Scopes{apikey.Chat, apikey.SessionsRead}}
	doomed, key, err := here.Keys.Create(t.Context(), grant)
	if err != nil {
		t.Fatal(err)
	}
	var sessions []string
	var streams []*stream
	for _, s := range []*service{here, there} {
		st := s.open(t, call{method: "POST", path: "messages", body: body(t, held), key: key})
		sessions = append(sessions, sessionOf(t, st.until("open")[0]))
		st.until("tool_use")
		streams = append(streams, st)
	}
	for i, s := range []*service{there, here} { // a reader on the other replica
		st := s.open(t, call{path: "sessions/" + sessions[i] + "/events", key: key})
		st.until("tool_use")
		streams = append(streams, st)
	}
	blocked := make(chan reply, 2)
	for _, s := range []*service{here, there} {
		go func() {
			blocked <- s.get(t, call{method: "POST", path: "messages", body: body(t, held, `"stream":false`), key: key})
		}()
	}
	kept := there.open(t, call{path: "sessions/" + sessions[0] + "/events"}) // uses another key
	for range 4 {
		here.Gate.Await(t)
	}

	if err := here.Keys.Revoke(t.Context(), here.Workspace.ID, doomed.ID); err != nil {
		t.Fatal(err)
	}
	for _, st := range streams {
		if rest := st.rest(); len(rest) > 0 {
			t.Errorf("a stream continued with %s", names(rest))
		}
	}
	for range 2 {
		if r := wait.Receive(t, "the blocking call", blocked); r.status != 401 || r.Error.Code != "INVALID_API_KEY" {
			t.Errorf("a blocking call: %d %s", r.status, r.text)
		}
	}
	for _, s := range []*service{here, there} {
		if r := s.get(t, call{path: "sessions", key: key}); r.status != 401 {
			t.Errorf("the key still works: %d", r.status)
		}
	}
	for range 4 {
		here.Gate.Leave <- struct{}{}
	}
	if got := names(kept.rest()); got != "open text tool_use tool_result text usage done" {
		t.Errorf("another key's stream: %s", got)
	}
}
