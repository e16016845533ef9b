package apitest

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/parley-server/parley/internal/server"
	"github.com/parley-server/parley/internal/sse"
	"github.com/parley-server/parley/internal/store/ratelimit"
	"github.com/parley-server/parley/internal/store/vault"
	"github.com/parley-server/parley/internal/testing/wait"
	"github.com/parley-server/parley/internal/tool"
	"github.com/parley-server/parley/internal/tool/knowledge"
	"github.com/parley-server/parley/internal/turn"
)

// ChatOptions are the parts that a test can change.
type ChatOptions struct {
	Limits ratelimit.Limits
	Window time.Duration // time to approve, which every tool call needs; 0: none does
	Wiki   bool          // agents have the tools for documents
}

// Chats is a process with chat protocols.
type Chats struct {
	*Service
	Client *http.Client
	Left   chan struct{} // a request has ended whose client has left
}

// NewChats starts a process that serves protocols.
func NewChats(t *testing.T, opt ChatOptions, protocols ...func(*server.Server) server.Routes) *Chats {
	t.Helper()
	tools := func(s *Service) []tool.Tool {
		if opt.Wiki {
			return knowledge.Tools(s.Wiki, nil)
		}
		return nil
	}
	s := &Chats{Left: make(chan struct{}, 100), Service: New(t, Options{Limits: opt.Limits, Tools: tools, Turns: func(c *turn.Config) {
		if opt.Window != 0 {
			Asking(c)
			c.Window = opt.Window
		}
	}})}
	srv := s.Server(t, nil)
	var routes []server.Routes
	for _, protocol := range protocols {
		routes = append(routes, protocol(srv))
	}
	router := srv.NewRouter(routes...)
	s.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			if r.Context().Err() == nil {
				return
			}
			select {
			case s.Left <- struct{}{}:
			default: // the test does not use it
			}
		}()
		router.ServeHTTP(w, r)
	}))
	s.Client = &http.Client{Transport: s.Checked(t), Timeout: wait.Limit}
	return s
}

// Call is one request. The zero value is GET with the service's key.
type Call struct {
	Method, Path, Body string
	Key                string // "-" sends none
	Header             []string
}

// Do sends a request.
func (s *Chats) Do(t *testing.T, c Call) *http.Response {
	t.Helper()
	if c.Method == "" {
		c.Method = http.MethodGet
		if c.Body != "" {
			c.Method = http.MethodPost
		}
	}
	r, err := http.NewRequestWithContext(t.Context(), c.Method, s.URL+c.Path, strings.NewReader(c.Body))
	if err != nil {
		t.Fatal(err)
	}
	if c.Key == "" {
		c.Key = s.Key
	}
	if c.Key != "-" {
		r.Header.Set("Authorization", "Bearer "+c.Key)
	}
	if c.Body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(c.Header); i += 2 {
		r.Header.Set(c.Header[i], c.Header[i+1])
	}
	res, err := s.Client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { res.Body.Close() })
	return res
}

// Reply is a complete response.
type Reply struct {
	Status int
	Header http.Header
	Text   string
	Body   map[string]any
	Code   string // code of an error
	Err    error  // the response was cut off
}

// Get sends a request and reads its response.
func (s *Chats) Get(t *testing.T, c Call) Reply {
	t.Helper()
	return ReadReply(s.Do(t, c))
}

// ReadReply reads a response.
func ReadReply(res *http.Response) Reply {
	text, err := io.ReadAll(res.Body)
	r := Reply{Status: res.StatusCode, Header: res.Header, Text: string(text), Err: err}
	_ = json.Unmarshal(text, &r.Body)
	if e, ok := r.Body["error"].(map[string]any); ok {
		r.Code, _ = e["code"].(string)
	}
	return r
}

// Stream returns the frames of a call to the end of the stream.
func (s *Chats) Stream(t *testing.T, c Call) []string {
	t.Helper()
	list, ok := Frames(t, s.Do(t, c))
	if !ok {
		t.Errorf("cut off after %v", list)
	}
	return list
}

// Frames returns the data of a stream's frames; ok is false if it was cut off.
func Frames(t *testing.T, res *http.Response) (list []string, ok bool) {
	t.Helper()
	if ct := res.Header.Get("Content-Type"); res.StatusCode != http.StatusOK || ct != "text/event-stream; charset=utf-8" {
		t.Fatalf("%d %s: %s", res.StatusCode, ct, ReadReply(res).Text)
	}
	reader := sse.NewReader(res.Body)
	for {
		f, err := reader.Next()
		if err != nil {
			return list, err == io.EOF
		}
		if named := strings.Contains(string(f.Data), `"type":"response.`); named != (f.Event != "message") || f.ID != "" {
			t.Errorf("a frame is called %q and has the id %q: %s", f.Event, f.ID, f.Data)
		}
		list = append(list, string(f.Data))
	}
}

// Declare registers a credential without a value.
func (s *Chats) Declare(t *testing.T, name string) {
	t.Helper()
	if _, err := s.Vault.Register(t.Context(), s.Workspace.ID, vault.Registration{Name: name, Hosts: []string{"example.com"}},
		"test"); err != nil {
		t.Fatal(err)
	}
}

// State describes the turns, approvals, sessions and messages of the database.
func (s *Chats) State(t *testing.T) (text string) {
	t.Helper()
	if err := s.Pool.QueryRow(t.Context(),
		`SELECT (SELECT string_agg(id::text || state, ',' ORDER BY id) FROM turns) || (SELECT string_agg(id::text || status, ',' ORDER BY id)
			FROM approvals)
		|| (SELECT count(*) FROM sessions) || ' ' || (SELECT count(*) FROM messages)`).Scan(&text); err != nil {
		t.Fatal(err)
	}
	return text
}

// CountMessages counts the messages of users.
func (s *Chats) CountMessages(t *testing.T) (n int) {
	t.Helper()
	if err := s.Pool.QueryRow(t.Context(), "SELECT count(*) FROM messages WHERE role = 'user'").Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}
