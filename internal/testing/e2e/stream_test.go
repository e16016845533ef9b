package e2e_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/sse"
)

// frame is the part of a stream's frame that readers keep. For done it is only the id, which shows
// whether the stream was resumed.
type frame struct {
	ID    string
	Event string
	Data  string
}

var errDropped = errors.New("the stream ended without done")

// statusError is a response that is not a stream.
type statusError struct {
	res  *http.Response
	body []byte
}

func (e statusError) Error() string { return fmt.Sprintf("%s: %s", e.res.Status, e.body) }

// stream reads one connection until done, until it breaks, or until see returns true.
func (w *world) stream(ctx context.Context, req *http.Request, see func(frame) bool) error {
	req = req.WithContext(ctx)
	if req.Header.Get("Authorization") == "" {
		req.Header.Set("Authorization", "Bearer "+w.key)
	}
	res, err := w.client.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		body, _ := io.ReadAll(res.Body)
		return statusError{res, body}
	}
	r := sse.NewReader(res.Body)
	for {
		f, err := r.Next()
		if err != nil {
			return errors.Join(errDropped, err)
		}
		got := frame{f.ID, f.Event, string(f.Data)}
		if got.Event == "done" {
			got.Data = ""
		}
		if !see(got) || got.Event == "done" {
			return nil
		}
	}
}

func (w *world) messages(s *server, body any) *http.Request {
	return s.post("/api/v1/workspaces/w/messages", body)
}

// post returns a request with a JSON body.
func (s *server) post(path string, body any) *http.Request {
	data, _ := json.Marshal(body)
	req, _ := http.NewRequest(http.MethodPost, s.url+path, bytes.NewReader(data))
	req.Header.Set("Content-Type", "application/json")
	return req
}

// do sends a request, with the world's key by default, and reads the response.
func (w *world) do(t *testing.T, req *http.Request) (*http.Response, []byte) {
	t.Helper()
	res, body, err := w.try(req)
	if err != nil {
		t.Fatal(err)
	}
	return res, body
}

// try is do for a request that may get no response.
func (w *world) try(req *http.Request) (*http.Response, []byte, error) {
	if req.Header.Get("Authorization") == "" {
		req.Header.Set("Authorization", "Bearer "+w.key)
	}
	res, err := w.client.Do(req)
	if err != nil {
		return nil, nil, err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	return res, body, err
}

func (w *world) events(s *server, session, cursor string) *http.Request {
	// A turn may end while its reader is disconnected: replay=all returns the rest even then.
	req, _ := http.NewRequest(http.MethodGet, s.url+"/api/v1/workspaces/w/sessions/"+session+"/events?replay=all", nil)
	if cursor != "" {
		req.Header.Set("Last-Event-ID", cursor)
	}
	return req
}

// start sends a message and closes its stream after the first frame.
func (w *world) start(t *testing.T, s *server, command string) (session string, open frame) {
	t.Helper()
	err := w.stream(t.Context(), w.messages(s, map[string]any{"command": command}), func(f frame) bool {
		open = f
		return false
	})
	if err != nil {
		t.Fatalf("send: %v", err)
	}
	var body struct {
		SessionID string `json:"session_id"`
	}
	if err := json.Unmarshal([]byte(open.Data), &body); err != nil || open.Event != "open" {
		t.Fatalf("first frame %+v: %v", open, err)
	}
	return body.SessionID, open
}

// follow reads a turn to its end through all faults: after every disconnect it reconnects with its
// cursor to the next server.
func (w *world) follow(ctx context.Context, session, cursor string, see func(frame), servers ...*server) ([]frame, error) {
	var all []frame
	for i := 0; ; i++ {
		done := false
		err := w.stream(ctx, w.events(servers[i%len(servers)], session, cursor), func(f frame) bool {
			if f.Event == "open" { // synthetic: not a row
				return true
			}
			all, cursor, done = append(all, f), f.ID, f.Event == "done"
			if see != nil {
				see(f)
			}
			return true
		})
		if done {
			return all, nil
		}
		if ctx.Err() != nil {
			return all, fmt.Errorf("after %d frames: %w (%v)", len(all), ctx.Err(), err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// table returns the log of a session's public events after its open row.
func (w *world) table(t *testing.T, session string) []frame {
	t.Helper()
	rows, err := w.pool.Query(t.Context(), `SELECT seq::text, kind, CASE WHEN kind = 'done' THEN '' ELSE data::text END FROM events
		WHERE session_id = $1 AND kind <> 'open' ORDER BY events.seq`, session)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var all []frame
	for rows.Next() {
		var f frame
		if err := rows.Scan(&f.ID, &f.Event, &f.Data); err != nil {
			t.Fatal(err)
		}
		if event.Kind(f.Event).Public() {
			all = append(all, f)
		}
	}
	if rows.Err() != nil {
		t.Fatal(rows.Err())
	}
	return all
}

func text(frames []frame) string {
	var b strings.Builder
	for _, f := range frames {
		var body struct {
			Text string `json:"text"`
		}
		if f.Event == "text" && json.Unmarshal([]byte(f.Data), &body) == nil {
			b.WriteString(body.Text)
		}
	}
	return b.String()
}

// answer returns the stored message of the agent.
func (w *world) answer(t *testing.T, session string) (content, status string) {
	t.Helper()
	err := w.pool.QueryRow(t.Context(), `SELECT coalesce(content, ''), status FROM messages WHERE session_id = $1 AND role = 'assistant'`,
		session).Scan(&content, &status)
	if err != nil {
		t.Fatal(err)
	}
	return content, status
}
