package e2e_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"testing"
)

// TestKilledWhileACallersToolWaits kills a server with kill -9 while its turn waits for the result of
// a caller's tool. Another server takes the result and ends the turn: each call has one beginning and
// one result.
func TestKilledWhileACallersToolWaits(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first, second := w.serve(t, nil), w.serve(t, nil, "--no-workers")
	message := map[string]any{"command": "@call write {\"path\":\"x\",\"content\":\"y\"} get_weather {}\n@say It is warm.",
		"tools": []any{map[string]any{"name": "get_weather"}}}
	var session, cursor string
	var asked struct {
		Calls []struct {
			ID string `json:"tool_use_id"`
		}
		ReplyURL string `json:"reply_url"`
	}
	err := w.stream(t.Context(), w.messages(first, message), func(f frame) bool {
		switch cursor = f.ID; f.Event {
		case "open":
			var open struct {
				SessionID string `json:"session_id"`
			}
			_ = json.Unmarshal([]byte(f.Data), &open)
			session = open.SessionID
		case "tool_required":
			_ = json.Unmarshal([]byte(f.Data), &asked)
			return false
		}
		return true
	})
	if err != nil || len(asked.Calls) != 1 {
		t.Fatalf("%+v: %v", asked, err)
	}
	first.kill()
	at, err := url.Parse(asked.ReplyURL)
	if err != nil {
		t.Fatal(err)
	}
	post := func() (int, string) {
		res, body := w.do(t, second.post(at.Path, map[string]any{"results": []any{map[string]any{"tool_use_id": asked.Calls[0].ID,
			"output": map[string]int{"celsius": 21}}}}))
		return res.StatusCode, string(body)
	}
	if status, body := post(); status != http.StatusOK {
		t.Fatalf("%d %s", status, body)
	}
	w.serve(t, nil)
	if _, err := w.follow(t.Context(), session, cursor, nil, second); err != nil {
		t.Fatal(err)
	}
	if status, body := post(); status != http.StatusOK {
		t.Errorf("the same result after the end: %d %s", status, body)
	}
	counts, replies := make(map[string]int), 0
	for _, f := range w.table(t, session) {
		counts[f.Event]++
	}
	if err := w.pool.QueryRow(t.Context(), "SELECT count(*) FROM events WHERE session_id = $1 AND kind = 'tool_reply'",
		session).Scan(&replies); err != nil {
		t.Fatal(err)
	}
	if counts["tool_use"] != 2 || counts["tool_required"] != 1 || replies != 1 || counts["tool_result"] != 2 || counts["done"] != 1 ||
		counts["error"] != 0 {
		t.Errorf("the log has %v and %d replies", counts, replies)
	}
	if content, status := w.answer(t, session); content != "It is warm." || status != "completed" {
		t.Errorf("%s %q", status, content)
	}
}
