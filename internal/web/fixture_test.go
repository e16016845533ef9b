package web

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/go-rod/rod/lib/proto"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/server"
	"github.com/parley-server/parley/internal/server/aisdk"
	"github.com/parley-server/parley/internal/server/rest"
	"github.com/parley-server/parley/internal/store/account"
	"github.com/parley-server/parley/internal/store/apikey"
	"github.com/parley-server/parley/internal/store/workspace"
	"github.com/parley-server/parley/internal/testing/apitest"
	"github.com/parley-server/parley/internal/testing/browser"
	"github.com/parley-server/parley/internal/toolenv/workdir"
)

// world is a server with the application.
type world struct {
	*apitest.Service
	app *App
}

func newWorld(t *testing.T) *world {
	t.Helper()
	return serveWorld(t, apitest.New(t, apitest.Options{}))
}

// serveWorld listens with the application and the API.
func serveWorld(t *testing.T, s *apitest.Service) *world {
	t.Helper()
	return serveConfigured(t, s, nil)
}

// serveConfigured is serveWorld with a changed configuration.
func serveConfigured(t *testing.T, s *apitest.Service, change func(*server.Config)) *world {
	t.Helper()
	srv := s.Server(t, change)
	api, err := rest.New(srv, nil)
	if err != nil {
		t.Fatal(err)
	}
	stores := s.Administration()
	stores.CheckModel = rejectModels
	app, err := newApp(srv, Stores{Stores: stores, Folders: workdir.New(s.Pool, workdir.Options{}), Models: []string{"builtin/guide",
		"openai/gpt-5-mini"}})
	if err != nil {
		t.Fatal(err)
	}
	s.Serve(t, srv.NewRouter(app.routes(), api, aisdk.New(srv)))
	return &world{s, app}
}

// rejectModels rejects models of one provider; those of a process depend on its configuration.
func rejectModels(_ context.Context, _ uuid.UUID, c workspace.Change) error {
	if c.Model == nil || !strings.HasPrefix(*c.Model, "absent/") {
		return nil
	}
	return fault.Invalid(fault.Violation{Param: "/model", Rule: "enum",
		Message: "This server has no provider absent. Its models are builtin/guide, openai/gpt-5-mini."})
}

// cookie creates a user with a role in the workspace demo and returns the cookie of a browser.
func (w *world) cookie(t *testing.T, n account.NewUser, role apikey.Role) *http.Cookie {
	t.Helper()
	u, err := w.Accounts.Create(t.Context(), n)
	if err != nil {
		t.Fatal(err)
	}
	if role != "" {
		if err := w.Accounts.SetRole(t.Context(), w.Workspace.ID, u.ID, role); err != nil {
			t.Fatal(err)
		}
	}
	value, err := w.Accounts.Begin(t.Context(), u.ID, "127.0.0.1", "Mozilla/5.0 (X11; Linux x86_64) Chrome/140.0")
	if err != nil {
		t.Fatal(err)
	}
	return &http.Cookie{Name: "parley_session", Value: value}
}

// signIn returns a page of a new user.
func (w *world) signIn(t *testing.T, n account.NewUser, role apikey.Role) *browser.Page {
	t.Helper()
	c := w.cookie(t, n, role)
	p := browser.New(t)
	p.MustSetCookies(&proto.NetworkCookieParam{Name: c.Name, Value: c.Value, URL: w.URL})
	return p
}

// say sends a message with more members of its body, and waits until its turn has ended.
func (w *world) say(t *testing.T, text, members string) {
	t.Helper()
	stream := w.begin(t, text, members)
	defer stream.Close()
	if _, err := readAll(stream); err != nil {
		t.Fatal(err)
	}
}

// begin sends a message and returns the stream of its turn. Without a text the members name a skill.
func (w *world) begin(t *testing.T, text, members string) io.ReadCloser {
	t.Helper()
	body := strings.Replace(`{"command":`+apitest.Quote(text)+`,`+members+`}`, ",}", "}", 1)
	if text == "" {
		body = "{" + members + "}"
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, w.URL+"/api/v1/workspaces/demo/messages", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+w.Key)
	r.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	if res.StatusCode != http.StatusOK && res.StatusCode != http.StatusAccepted {
		text, _ := readAll(res.Body)
		res.Body.Close()
		t.Fatal(res.Status, text)
	}
	return res.Body
}

func readAll(r io.Reader) (string, error) {
	data, err := io.ReadAll(r)
	return string(data), err
}

// post sends a form with the cookies of a page and returns the status.
func (w *world) post(t *testing.T, p *browser.Page, path, body string) int {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, w.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	for _, c := range p.MustCookies() {
		r.AddCookie(&http.Cookie{Name: c.Name, Value: c.Value})
	}
	res, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	return res.StatusCode
}

// unhurt fails the test if a text became an element or a script of the page.
func unhurt(t *testing.T, p *browser.Page) {
	t.Helper()
	if p.MustEval(`() => typeof hacked !== "undefined"`).Bool() {
		t.Errorf("%s: a script ran", p.Path())
	}
	if n := p.MustEval(
		`() => document.querySelectorAll("main img, main script, main iframe, main style, main svg[onload], [href^=javascript], ` +
			`[href^=data]").length`).Int(); n > 0 {
		t.Errorf("%s: %d elements come from texts", p.Path(), n)
	}
}

func cookieParam(c *proto.NetworkCookie, url string) *proto.NetworkCookieParam {
	return &proto.NetworkCookieParam{Name: c.Name, Value: c.Value, URL: url}
}
