package server_test

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/parley-server/parley/internal/server/agui"
	"github.com/parley-server/parley/internal/server/aisdk"
	"github.com/parley-server/parley/internal/server/openai"
	"github.com/parley-server/parley/internal/server/request"
	"github.com/parley-server/parley/internal/sse"
	"github.com/parley-server/parley/internal/store/ratelimit"
	"github.com/parley-server/parley/internal/store/vault"
	"github.com/parley-server/parley/internal/testing/apitest"
	"github.com/parley-server/parley/internal/testing/slow"
	"github.com/parley-server/parley/internal/tool"
	"github.com/parley-server/parley/internal/tool/knowledge"
	"github.com/parley-server/parley/internal/turn"
)

// service is a process with every door.
type service struct {
	*apitest.Service
	client *http.Client
	left   chan struct{} // a request has ended whose client is gone
}

// options are what a test can change.
type options struct {
	limits ratelimit.Limits
	window time.Duration // every call of a tool needs an approval, and has this time for it; 0: none does
	wiki   bool          // agents have the tools over documents
}

func start(t *testing.T, opt options) *service {
	t.Helper()
	slow.Test(t, "runs a server",
		"TestCompletionsContinueAChat", "TestChat", "TestRunBeginsWithASnapshot", "TestChatIsResumed")
	tools := func(s *apitest.Service) []tool.Tool {
		if opt.wiki {
			return knowledge.Tools(s.Wiki, nil)
		}
		return nil
	}
	s := &service{left: make(chan struct{}, 100), Service: apitest.New(t, apitest.Options{Limits: opt.limits, Tools: tools, Turns: func(c *turn.Config) {
		if opt.window != 0 {
			apitest.Asking(c)
			c.Window = opt.window
		}
	}})}
	srv := s.Server(t, nil)
	router := srv.NewRouter(openai.New(srv), aisdk.New(srv), agui.New(srv))
	s.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			if r.Context().Err() == nil {
				return
			}
			select {
			case s.left <- struct{}{}:
			default: // of a test that does not ask
			}
		}()
		router.ServeHTTP(w, r)
	}))
	s.client = &http.Client{Transport: s.Checked(t)}
	return s
}

// call is one request. The zero value is GET with the service's key.
type call struct {
	method, path, body string
	key                string // "-" sends none
	header             []string
}

func (s *service) do(t *testing.T, c call) *http.Response {
	t.Helper()
	if c.method == "" {
		c.method = http.MethodGet
		if c.body != "" {
			c.method = http.MethodPost
		}
	}
	r, err := http.NewRequestWithContext(t.Context(), c.method, s.URL+c.path, strings.NewReader(c.body))
	if err != nil {
		t.Fatal(err)
	}
	if c.key == "" {
		c.key = s.Key
	}
	if c.key != "-" {
		r.Header.Set("Authorization", "Bearer "+c.key)
	}
	if c.body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(c.header); i += 2 {
		r.Header.Set(c.header[i], c.header[i+1])
	}
	res, err := s.client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { res.Body.Close() })
	return res
}

// reply is a whole answer.
type reply struct {
	status int
	header http.Header
	text   string
	body   map[string]any
	code   string // of an error
	err    error  // the answer was cut off
}

func (s *service) get(t *testing.T, c call) reply {
	t.Helper()
	return whole(s.do(t, c))
}

func whole(res *http.Response) reply {
	text, err := io.ReadAll(res.Body)
	r := reply{status: res.StatusCode, header: res.Header, text: string(text), err: err}
	_ = json.Unmarshal(text, &r.body)
	if e, ok := r.body["error"].(map[string]any); ok {
		r.code, _ = e["code"].(string)
	}
	return r
}

// frames are the data of a stream's frames; ok is false where it was cut off.
func frames(t *testing.T, res *http.Response) (list []string, ok bool) {
	t.Helper()
	if ct := res.Header.Get("Content-Type"); res.StatusCode != http.StatusOK || ct != "text/event-stream; charset=utf-8" {
		t.Fatalf("%d %s: %s", res.StatusCode, ct, whole(res).text)
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

// stream is what a call streams to its end.
func (s *service) stream(t *testing.T, c call) []string {
	t.Helper()
	list, ok := frames(t, s.do(t, c))
	if !ok {
		t.Errorf("cut off after %v", list)
	}
	return list
}

// held is a command whose turn says something, waits at the gate and goes on.
const held = "@text 3 deltas\n@call gate {}\n@text 3 deltas"

func quote(text string) string { return string(request.QuoteText(text)) }

// declare registers a credential without a value.
func (s *service) declare(t *testing.T, name string) {
	t.Helper()
	if _, err := s.Vault.Register(t.Context(), s.Workspace.ID, vault.Registration{Name: name, Hosts: []string{"example.com"}}, "test"); err != nil {
		t.Fatal(err)
	}
}
