package web

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"path"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/parley-server/parley/internal/session"
	"github.com/parley-server/parley/internal/store/account"
	"github.com/parley-server/parley/internal/store/agent"
	"github.com/parley-server/parley/internal/store/apikey"
	"github.com/parley-server/parley/internal/testing/browser"
	"github.com/parley-server/parley/internal/testing/slow"
	waiting "github.com/parley-server/parley/internal/testing/wait"
)

// TestFormsNeedNoScripts goes through the main forms in a browser whose scripts are off: sign in,
// allow a call, publish an agent, create and revoke a key, save a view, change a role, stop agents.
func TestFormsNeedNoScripts(t *testing.T) {
	t.Parallel()
	w := playWorld(t, 10*time.Minute)
	if _, err := w.Accounts.Create(t.Context(), account.NewUser{Email: "anna@halden.example", Name: "Anna Berg", Password: password,
		Admin: true}); err != nil {
		t.Fatal(err)
	}
	w.cookie(t, account.NewUser{Email: "vera@halden.example", Name: "Vera Holm"}, apikey.Viewer)
	w.begin(t, "@call touch {}\n@say Touched.", `"user":"kim"`).Close() // the turn continues
	waiting.For(t, "a request", func() bool {
		list, err := w.Sessions.Approvals(t.Context(), w.Workspace.ID, session.ApprovalQuery{Status: "pending", Limit: 1})
		return err == nil && len(list.Data) == 1
	})
	p := browser.New(t)
	p.WithoutScripts()
	p.Go(w.URL + "/w/demo/approvals")
	p.See("h1", "Sign in")
	p.Fill("#f-email", "anna@halden.example")
	p.Fill("#f-password", password)
	p.Press("button.primary", "Sign in")
	p.Press("button.primary", "Allow once")
	p.See("[role=status]", "Allowed by Anna Berg")

	p.Go(w.URL + "/w/demo/agent")
	p.Fill("#f-instructions", "Answer in one sentence.")
	p.Press("button", "Save draft")
	p.Press("button.primary", "Publish v2")
	p.See(".note", "Version 2 published")
	ag, err := w.Agents.Find(t.Context(), w.Workspace.ID, "")
	if err != nil {
		t.Fatal(err)
	}
	if v, err := w.Agents.Version(t.Context(), ag, agent.Published); err != nil || v.Instructions != "Answer in one sentence." {
		t.Errorf("published %q, %v", v.Instructions, err)
	}

	p.Go(w.URL + "/w/demo/settings/developer")
	p.Fill("#f-name", "site")
	p.Press("button.primary[type=submit]", "Create key")
	key := p.MustElement("#once").MustProperty("value").Str()
	if status := w.use(t, key); status != http.StatusOK {
		t.Errorf("the new key: %d", status)
	}
	p.Go(w.URL + "/w/demo/settings/developer?revoke=" + key[4:12])
	p.Press("button.fill", "Revoke key")
	if status := w.use(t, key); status != http.StatusUnauthorized {
		t.Errorf("the revoked key: %d", status)
	}

	p.Go(w.URL + "/w/demo/sessions")
	p.Choose("[name=status]", "completed")
	p.Press("button", "Filter")
	p.Fill("[name=name]", "Ended ones")
	p.Press("button", "Save these filters")
	p.See(".seg a[aria-current]", "Ended ones")
	if views, err := w.Accounts.Views(t.Context(), w.Workspace.ID, w.userID(t, "anna@halden.example")); err != nil || len(views) != 1 ||
		views[0].Filters != "status="+string(session.Done) {
		t.Errorf("stored %+v, %v", views, err)
	}

	var parent session.Summary
	waiting.For(t, "the end of the turn", func() bool {
		list, err := w.Sessions.Summaries(t.Context(), w.Workspace.ID, session.SummaryQuery{Status: session.Done, Limit: 1})
		if err != nil || len(list.Data) == 0 {
			return false
		}
		parent = list.Data[0]
		return true
	})
	p.Go(w.URL + "/w/demo/sessions/" + parent.SessionID.String())
	p.Press("button", "Fork from here")
	p.See("[role=status]", "Forked the session")
	p.See("p", "Forked from "+parent.SessionID.String())
	p.See("article", "Touched.")

	p.Go(w.URL + "/w/demo/settings/members")
	p.Choose("td select", "editor")
	p.Press("td button", "Save")
	p.See(".note", "Role changed to editor")
	p.Go(w.URL + "/w/demo/settings/workspace")
	p.Press("a.danger", "Stop agents")
	p.See("dialog.inline", "Stop the agents") // a script would make it modal
	p.Press("button.fill", "Stop agents")
	p.See("b", "Agents are stopped")
	p.Press("button", "Resume agents")
	p.See("b", "Stop the agents")
	p.Go(w.URL + "/account")
	p.Press(".seg button", "Dark")
	p.See("html[data-theme=dark] h2", "Colours")
}

// userID returns the id of a user.
func (w *world) userID(t *testing.T, email string) string {
	t.Helper()
	u, err := w.Accounts.User(t.Context(), email)
	if err != nil {
		t.Fatal(err)
	}
	return u.ID
}

var (
	staticFile = regexp.MustCompile(`(?:src|href)="(/static/[^"]+)"`)
	importOf   = regexp.MustCompile(`(?:from|import) ?"(\./[^"]+)"`)
)

// TestPagesAreSmall loads every page that an administrator can open, with its style sheets and
// scripts: compressed, they have 180 KB at most.
func TestPagesAreSmall(t *testing.T) {
	t.Parallel()
	slow.Test(t, "compresses every page")
	w := newWorld(t)
	w.say(t, "What can you do?", "")
	list, err := w.Sessions.Summaries(t.Context(), w.Workspace.ID, session.SummaryQuery{Limit: 1})
	if err != nil || len(list.Data) != 1 {
		t.Fatalf("%d sessions, %v", len(list.Data), err)
	}
	c := w.cookie(t, account.NewUser{Email: "anna@halden.example", Admin: true}, "")
	largest, at, pages := 0, "", 0
	for _, rt := range table() {
		if rt.get == nil || placeholders.MatchString(strings.NewReplacer("{ws}", "", "{session}", "").Replace(rt.path)) {
			continue
		}
		name := strings.NewReplacer("{ws}", "demo", "{session}", list.Data[0].SessionID.String()).Replace(rt.path)
		size := w.weight(t, name, c)
		if size > 180<<10 {
			t.Errorf("%s has %d bytes", name, size)
		}
		if size > largest {
			largest, at = size, name
		}
		pages++
	}
	t.Logf("the largest of %d pages is %s with %d bytes", pages, at, largest)
	if pages < 25 || largest < 20<<10 {
		t.Errorf("%d pages were measured, the largest has %d bytes", pages, largest)
	}
}

// weight returns the compressed size of a page with everything that it loads; 0 for one that is no
// page.
func (w *world) weight(t *testing.T, name string, c *http.Cookie) int {
	t.Helper()
	html := w.read(t, name, c)
	total := compressed(t, html)
	seen := make(map[string]bool)
	var add func(file string)
	add = func(file string) {
		if seen[file] {
			return
		}
		seen[file] = true
		text := w.read(t, file, nil)
		total += compressed(t, text)
		for _, m := range importOf.FindAllStringSubmatch(text, -1) {
			add(path.Join(path.Dir(file), m[1]))
		}
	}
	for _, m := range staticFile.FindAllStringSubmatch(html, -1) {
		add(m[1])
	}
	return total
}

// read returns the body of a response.
func (w *world) read(t *testing.T, name string, c *http.Cookie) string {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, w.URL+name, nil)
	if err != nil {
		t.Fatal(err)
	}
	if c != nil {
		r.AddCookie(c)
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := readAll(res.Body)
	if err != nil || res.StatusCode >= http.StatusInternalServerError {
		t.Fatal(name, res.Status, err)
	}
	return text
}

func compressed(t *testing.T, text string) int {
	t.Helper()
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	if _, err := io.WriteString(z, text); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Len()
}
