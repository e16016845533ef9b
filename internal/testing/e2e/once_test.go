package e2e_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/parley-server/parley/internal/testing/wait"
)

// keyed returns a request for a message with an Idempotency-Key.
func (w *world) keyed(s *server, key string, body map[string]any) *http.Request {
	r := w.messages(s, body)
	r.Header.Set("Idempotency-Key", key)
	return r
}

// turns counts the stored turns.
func (w *world) turns(t *testing.T) (n int) {
	t.Helper()
	if err := w.pool.QueryRow(t.Context(), `SELECT count(*) FROM turns`).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// TestOneTurnHoweverOftenItIsSent sends one message twenty times at once through two
// replicas: as a stream, as a blocking call, and with a callback.
func TestOneTurnHoweverOftenItIsSent(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	reports := make(chan string, 100)
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		reports <- r.Header.Get("webhook-id")
	}))
	t.Cleanup(receiver.Close)
	// Without a public address, links would begin with that of the requested server.
	env := []string{"PARLEY_EGRESS_ALLOW=" + receiver.URL, "PARLEY_BASE_URL=https://parley.example"}
	servers := []*server{w.serve(t, env), w.serve(t, env)}
	const command = "@text 60 deltas of 12 bytes at 100/s"
	for n, c := range []struct {
		name   string
		body   map[string]any
		status int
		whole  string
	}{
		{"stream", map[string]any{"command": command}, http.StatusOK, "event: done"},
		{"blocking", map[string]any{"command": command, "stream": false}, http.StatusOK, `"success":true`},
		{"callback", map[string]any{"command": command, "callback": receiver.URL + "/hook"}, http.StatusAccepted, `"status":"queued"`},
	} {
		type answer struct {
			status   int
			replayed string
			body     string
		}
		answers := make(chan answer, 20)
		var wg sync.WaitGroup
		for i := range cap(answers) {
			wg.Go(func() {
				res, body, err := w.try(w.keyed(servers[i%2], "order-17-"+c.name, c.body))
				if err != nil {
					t.Errorf("%s: %v", c.name, err)
					return
				}
				answers <- answer{res.StatusCode, res.Header.Get("Idempotent-Replayed"), string(body)}
			})
		}
		wait.Until(t, "all goroutines", wg.Wait)
		close(answers)
		first, all, fresh := answer{}, 0, 0
		for a := range answers {
			if all++; all == 1 {
				first = a
			}
			if a.replayed == "" {
				fresh++
			}
			if a.status != c.status || a.body != first.body || !strings.Contains(a.body, c.whole) {
				t.Errorf("%s: %d %.300s\nanother was %.300s", c.name, a.status, a.body, first.body)
			}
		}
		if got := w.turns(t); all != 20 || fresh != 1 || got != n+1 {
			t.Errorf("%s: %d answers, %d of them first responses; %d turns, want %d", c.name, all, fresh, got, n+1)
		}
	}
	wait.Receive(t, "a report", reports)
	res, body := w.do(t, w.keyed(servers[1], "order-17-callback", map[string]any{"command": command, "callback": receiver.URL + "/hook"}))
	if res.StatusCode != http.StatusAccepted || res.Header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("after its end: %d %s", res.StatusCode, body)
	}
	var deliveries int
	if err := w.pool.QueryRow(t.Context(), `SELECT count(*) FROM callback_deliveries`).Scan(&deliveries); err != nil || deliveries != 1 ||
		len(reports) > 0 {
		t.Errorf("%d reports, %d more came, %v", deliveries, len(reports), err)
	}
}

// TestLostAnswerIsFoundAgain loses the response after the message was stored: the client
// disconnects, or the server is killed. The same request finds the turn.
func TestLostAnswerIsFoundAgain(t *testing.T) {
	t.Parallel()
	for _, loss := range []string{"the client hangs up", "the server is killed"} {
		for name, body := range map[string]map[string]any{
			"stream":   {"command": "@text 60 deltas of 12 bytes at 100/s"},
			"blocking": {"command": "@text 60 deltas of 12 bytes at 100/s", "stream": false},
		} {
			t.Run(loss+", "+name, func(t *testing.T) {
				t.Parallel()
				w := newWorld(t)
				first := w.serve(t, nil)
				w.lose(t, first, w.keyed(first, "k", body))
				if loss == "the server is killed" {
					first.kill()
				}
				second := w.serve(t, nil)
				var session string
				if err := w.pool.QueryRow(t.Context(), `SELECT session_id FROM turns`).Scan(&session); err != nil {
					t.Fatal(err)
				}
				var said string
				if name == "stream" {
					var frames []frame
					err := w.stream(t.Context(), w.keyed(second, "k", body), func(f frame) bool {
						frames = append(frames, f)
						return true
					})
					if err != nil || frames[0].Event != "open" || !strings.Contains(frames[0].Data, session) {
						t.Fatalf("%v, %v", frames, err)
					}
					w.agree(t, session, frames[1:], text(frames))
					said = text(frames)
				} else {
					res, answer := w.do(t, w.keyed(second, "k", body))
					var got struct {
						SessionID string `json:"session_id"`
						Output    string
					}
					if err := json.Unmarshal(answer, &got); err != nil || got.SessionID != session || res.Header.Get("Idempotent-Replayed") != "true" {
						t.Errorf("%s %s, want session %s", res.Status, answer, session)
					}
					said = got.Output
				}
				if len(said) != 60*12 || w.turns(t) != 1 {
					t.Errorf("%d bytes in %d turns", len(said), w.turns(t))
				}
			})
		}
	}
}

// lose sends a request and disconnects when its message is stored, without having read a byte.
func (w *world) lose(t *testing.T, s *server, r *http.Request) {
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	r.Header.Set("Authorization", "Bearer "+w.key)
	if err := r.Write(conn); err != nil {
		t.Fatal(err)
	}
	wait.For(t, fmt.Sprintf("%s is stored", r.URL), func() bool { return w.turns(t) == 1 })
}
