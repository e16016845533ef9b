package admin_test

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/parley-server/parley/internal/server/admin"
	"github.com/parley-server/parley/internal/testing/apitest"
	"github.com/parley-server/parley/internal/testing/slow"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// service is a process with the administration API, whose client compares every response with the
// OpenAPI document.
type service struct {
	*apitest.Service
	client *http.Client
}

func start(t *testing.T) *service {
	t.Helper()
	slow.Test(t, "runs a server", "TestKeysAreAdministered")
	s := &service{Service: apitest.New(t, apitest.Options{})}
	srv := s.Server(t, nil)
	s.Serve(t, srv.NewRouter(admin.New(srv, s.Administration())))
	s.client = &http.Client{Transport: s.Checked(t)}
	return s
}

// reply is a complete response.
type reply struct {
	status int
	header http.Header
	text   string
	Data   json.RawMessage
	Error  struct {
		Code, Param string
		Violations  []struct{ Param, Rule string }
	}
	HasMore    bool    `json:"has_more"`
	NextCursor *string `json:"next_cursor"`
}

// do sends a request: "PATCH keys/x", relative to the workspace or absolute. more are headers.
func (s *service) do(t *testing.T, call, body string, more ...string) reply {
	t.Helper()
	method, path, _ := strings.Cut(call, " ")
	if !strings.HasPrefix(path, "/") {
		path = strings.TrimSuffix("/api/v1/workspaces/demo/"+path, "/")
	}
	r, err := http.NewRequestWithContext(t.Context(), method, s.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+s.Key)
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(more); i += 2 {
		r.Header.Set(more[i], more[i+1])
	}
	res, err := s.client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	got := reply{status: res.StatusCode, header: res.Header, text: string(text)}
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatalf("%s: %s", call, text)
	}
	return got
}

// must is do for a request that succeeds. It stores the data in into, which may be nil.
func (s *service) must(t *testing.T, call, body string, into any, more ...string) reply {
	t.Helper()
	got := s.do(t, call, body, more...)
	if got.status >= 300 {
		t.Fatalf("%s %s: %d %s", call, body, got.status, got.text)
	}
	if into != nil {
		if err := json.Unmarshal(got.Data, into); err != nil {
			t.Fatalf("%s: %v", got.text, err)
		}
	}
	return got
}

// refused checks that a request fails with a code.
func (s *service) refused(t *testing.T, code, call, body string, more ...string) reply {
	t.Helper()
	got := s.do(t, call, body, more...)
	if got.Error.Code != code {
		t.Errorf("%s %s: %d %s; want %s", call, body, got.status, got.text, code)
	}
	return got
}
