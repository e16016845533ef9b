package a2a_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	"go.uber.org/goleak"

	"github.com/parley-server/parley/internal/egress"
	"github.com/parley-server/parley/internal/server"
	"github.com/parley-server/parley/internal/server/a2a"
	"github.com/parley-server/parley/internal/store/apikey"
	"github.com/parley-server/parley/internal/testing/apitest"
	"github.com/parley-server/parley/internal/testing/slow"
	"github.com/parley-server/parley/internal/tool"
	"github.com/parley-server/parley/internal/tool/knowledge"
	"github.com/parley-server/parley/internal/turn"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// service is a process with this protocol.
type service struct {
	*apitest.Service
	client *http.Client
	key    string // scope a2a
	hook   *hook
}

// start runs a service. Tools without a rule need an approval.
func start(t testing.TB, change func(*server.Config)) *service {
	t.Helper()
	slow.Test(t, "runs a server",
		"TestTheCard", "TestASkillIsCalledAsItsCardSays", "TestApproverNeedsTheScope")
	s := &service{hook: newHook(t)}
	s.Service = apitest.New(t, apitest.Options{
		Gate: "read", // so that no approval is needed
		Tools: func(s *apitest.Service) []tool.Tool {
			own := slices.DeleteFunc(knowledge.Tools(s.Wiki, nil), func(t tool.Tool) bool { return t.Spec().Name != "wiki_write" })
			return append(own, apitest.Touch{})
		},
		Egress: egress.Config{Allow: []string{"http://hook.example:80=" + s.hook.addr}},
		Turns: func(c *turn.Config) {
			apitest.Asking(c)
			c.Reports = a2a.Reports("https://parley.example")
		},
	})
	s.key = s.Issue(t, s.Workspace, apikey.A2A)
	srv := s.Server(t, func(c *server.Config) {
		if c.Version = "1.2.3"; change != nil {
			change(c)
		}
	})
	s.Serve(t, srv.NewRouter(a2a.New(srv, true)))
	s.client = &http.Client{Transport: s.Checked(t)}
	return s
}

// held is a command whose turn writes text, waits at the gate and continues.
const held = "@say before the gate\n@call read {}\n@say and after it"

// asking is a command whose turn needs an approval.
const asking = "@say I would touch it.\n@call touch {\"what\":\"it\"}\n@say It is done."

// hook receives push notifications, at http://hook.example/.
type hook struct {
	addr string
	got  chan notification
}

type notification struct {
	header http.Header
	body   []byte
}

func newHook(t testing.TB) *hook {
	h := &hook{got: make(chan notification, 100)}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		h.got <- notification{r.Header, body}
	}))
	t.Cleanup(srv.Close)
	h.addr = srv.Listener.Addr().String()
	return h
}
