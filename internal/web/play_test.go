package web

import (
	"net/http"
	"testing"
	"time"

	"github.com/go-rod/rod/lib/input"
	"github.com/go-rod/rod/lib/proto"
	"github.com/ysmood/gson"

	"github.com/parley-server/parley/internal/server/rest"
	"github.com/parley-server/parley/internal/testing/apitest"
	"github.com/parley-server/parley/internal/testing/browser"
	"github.com/parley-server/parley/internal/tool"
	"github.com/parley-server/parley/internal/turn"
)

// playWorld is a server whose agent asks before each call, and a member who is signed in.
func playWorld(t *testing.T, window time.Duration) *world {
	t.Helper()
	s := apitest.New(t, apitest.Options{
		Tools: func(*apitest.Service) []tool.Tool { return []tool.Tool{apitest.Touch{}} },
		Turns: func(c *turn.Config) {
			if window > 0 {
				apitest.Asking(c)
				c.Window = window
			}
		},
	})
	srv := s.Server(t, nil)
	api, err := rest.New(srv, nil)
	if err != nil {
		t.Fatal(err)
	}
	app, err := newApp(srv)
	if err != nil {
		t.Fatal(err)
	}
	app.visit = func(*http.Request) (*Visitor, error) {
		return &Visitor{ID: "mbr_anna", Name: "Anna Lindqvist", Roles: map[string]string{"demo": "owner"}}, nil
	}
	s.Serve(t, srv.NewRouter(app.routes(), api))
	return &world{s, app}
}

// openPlay opens a page of the workspace.
func (w *world) openPlay(t *testing.T, path string) *browser.Page {
	t.Helper()
	p := browser.New(t)
	if err := (proto.NetworkSetExtraHTTPHeaders{Headers: proto.NetworkHeaders{"Authorization": gson.New("Bearer " + w.Key)}}).Call(p); err != nil {
		t.Fatal(err)
	}
	return p.Go(w.URL + "/w/demo/" + path)
}

// send types a message and sends it.
func send(p *browser.Page, text string) {
	p.MustElement("#msg").MustInput(text)
	p.Keyboard.MustType(input.Enter)
}

func TestSendAndRead(t *testing.T) {
	t.Parallel()
	w := playWorld(t, 0)
	p := w.openPlay(t, "chat")
	send(p, "@say **Hello** from the agent.")
	p.See(".prose strong", "Hello")
	p.See("#state", "done")
	p.Review("chat")
}
