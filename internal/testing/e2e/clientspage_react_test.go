package e2e_test

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/parley-server/parley/internal/testing/slow"
	"github.com/parley-server/parley/internal/testing/wait"
)

// mount puts the page of docs/guides/clients/ai-sdk.md into a document.
const mount = `
	import { createRoot } from "react-dom/client";
	import { Conversation } from "./conversation";
	import { history } from "./history";
	const id = location.hash.slice(1);
	createRoot(document.body).render(<Conversation id={id} history={await history(id)} load={history} />);
`

// TestClientsPageOfUseChat builds the page of docs/guides/clients/ai-sdk.md from its examples and
// uses it in a browser, while its server dies, while the server is unreachable and while another
// tab answers first.
func TestClientsPageOfUseChat(t *testing.T) {
	t.Parallel()
	slow.Test(t, "runs processes")
	script := bundle(t, map[string]string{
		"main.tsx":         mount,
		"conversation.tsx": exampleOf(t, "ai-sdk", "tsx"),
		"told.js":          "export " + functionOf(t, "ai-sdk", "told"),
		"history.js":       constantsOf + "export " + functionOf(t, "ai-sdk", "history"),
	})
	browser := browse(t)
	w := newWorld(t)
	w.parley(t, "permissions", "set", "wiki_write", "ask", "--workspace", "w")
	w.key = w.parley(t, "keys", "create", "--workspace", "w", "--name", "page", "--scope", "chat", "--scope", "sessions:read", "--scope",
		"wiki:write")
	s := w.serve(t, nil)
	var apart atomic.Bool // the page cannot reach its server
	var loads atomic.Int64
	slow := make(chan struct{}) // closed when a new chat may receive that no stream can be resumed
	front := w.front(t, s.url, func(rw http.ResponseWriter, r *http.Request) bool {
		switch path, chat := strings.CutPrefix(r.URL.Path, "/api/chat"); {
		case r.URL.Path == "/":
			_, _ = rw.Write([]byte(`<!doctype html><body><script type="module" src="/page.js"></script>`))
		case r.URL.Path == "/page.js":
			rw.Header().Set("Content-Type", "text/javascript")
			_, _ = rw.Write(script)
		case chat && path == "/two/stream" && loads.Load() == 1:
			<-slow
			rw.WriteHeader(http.StatusNoContent)
		case apart.Load():
			panic(http.ErrAbortHandler)
		case chat:
			r.URL.Path = "/api/v1/workspaces/w/ui/chat" + path
			return false
		default:
			if r.URL.Query().Get("caller_id") == "two" {
				loads.Add(1)
			}
			return false
		}
		return true
	})
	tab := browser.MustPage(front + "/#one")
	send := func(text string) {
		t.Helper()
		tab.MustElement("textarea").MustInput(text)
		tab.MustWait(`() => { // while the page is busy, the draft stays
			if (document.forms[0].elements.text.value === "") return true;
			[...document.querySelectorAll("button")].find((b) => b.innerText === "Send").click();
			return false;
		}`)
	}
	shows := func(text string) { t.Helper(); tab.MustWait(`text => document.body.innerText.includes(text)`, text) }
	answer := `() => document.querySelector(".assistant:last-of-type")?.innerText ?? ""`

	send("What is 12*7+3?")
	shows("87")
	send("@call wiki_write {\"page\":\"tea\",\"content\":\"At four.\"}\n@say It is written.")
	tab.MustElementR("button", "Allow")
	tab.MustReload() // the question is displayed again
	shows("At four.")
	tab.MustElementR("button", "Allow").MustClick()
	shows("It is written.")
	shows("wiki_write: output-available")

	send("@text 400 deltas of 12 bytes at 25/s")
	tab.MustWait(`() => (` + answer + `)().length > 600`)
	tab.MustElement("textarea").MustInput("count to 3") // a draft is kept
	kept := tab.MustEval(`() => { document.forms[0].requestSubmit(); return document.forms[0].elements.text.value }`).Str()
	if kept != "count to 3" {
		t.Errorf("sent while an answer streams: there is %q left", kept)
	}
	if !tab.MustElementR("button", "Send").MustDisabled() {
		t.Error("an answer streams, and the page offers to send")
	}
	s.kill()
	s = w.serveAt(t, strings.TrimPrefix(s.url, "http://"), nil)
	tab.MustWait(`() => (` + answer + `)().includes("399..")`)
	if n := tab.MustEval(`() => (` + answer + `)().length`).Int(); n < 400*12-1 || n > 400*12 {
		t.Errorf("%d characters after kill -9, want %d", n, 400*12)
	}
	tab.MustElementR("button", "Send").MustClick() // as soon as that is possible
	tab.MustWait(`() => (` + answer + `)() === "1 2 3"`)

	send("@text 200 deltas of 12 bytes at 100/s")
	tab.MustWait(`() => (` + answer + `)().length > 600 && !(` + answer + `)().includes("399..")`)
	apart.Store(true)
	s.kill()
	w.serveAt(t, strings.TrimPrefix(s.url, "http://"), nil)
	wait.For(t, "the turn ends while the page is apart", func() bool {
		var active int
		err := w.pool.QueryRow(t.Context(), "SELECT count(*) FROM turns WHERE finished_at IS NULL").Scan(&active)
		return err == nil && active == 0
	})
	apart.Store(false)
	tab.MustWait(`() => (` + answer + `)().includes("199..")`) // from the messages of the session

	send("@text 1000 deltas of 12 bytes at 20/s")
	// else nothing to cancel
	tab.MustWait(`() => document.querySelector(".assistant:last-of-type")?.previousElementSibling.innerText.includes("1000 deltas")`)
	tab.MustElementR("button", "Cancel").MustClick()
	tab.MustWait(`() => ![...document.querySelectorAll("button")].some((b) => b.innerText === "Cancel")`)
	send(" ")
	shows("The last message of the user has no text.")

	tab = browser.MustPage(front + "/#two") // a message sent before the page knows that no stream can be resumed is kept
	send("What is 12*7+3?")
	shows("87")
	close(slow)
	send("count to 4")
	shows("1 2 3 4")
	shows("What is 12*7+3?")
	if n := loads.Load(); n != 1 {
		t.Errorf("the messages of a new chat were loaded %d times", n)
	}
	apart.Store(true) // a message that never arrived is kept as well
	send("These words get lost.")
	tab.MustElement("[role=alert]")
	apart.Store(false)
	wait.For(t, "the page looks for its answer", func() bool { return loads.Load() == 2 })
	send("count to 5")
	shows("1 2 3 4 5")
	shows("These words get lost.")

	for i, c := range []struct{ then, first, more, last string }{
		{"@say It is written.", "It is written.", "", "It is written."},
		{"@say It is written.", "It is written.", "count to 4", "1 2 3 4"},
		{"@text 100 deltas of 12 bytes at 25/s", "0...", "", "99..."},
	} {
		chat := fmt.Sprintf("%s/#three-%d", front, i)
		tab = browser.MustPage(chat)
		send("@call wiki_write {\"page\":\"tea\",\"content\":\"At four.\"}\n" + c.then)
		allow := tab.MustElementR("button", "Allow")
		slower := browser.MustPage(chat)
		slower.MustElementR("button", "Deny")
		tab.MustActivate()
		allow.MustClick()
		tab.MustWait(`first => (`+answer+`)().includes(first)`, c.first)
		if c.more != "" {
			send(c.more)
			shows(c.last)
		}
		tab = slower.MustActivate()
		tab.MustElementR("button", "Deny").MustClick()
		tab.MustWait(`last => (`+answer+
			`)().includes(last) && document.querySelector("[role=alert]")?.innerText.includes("answered before: allowed")`, c.last)
	}
}

// constantsOf declares the constants that the functions of the page use.
const constantsOf = "const api = \"/api/v1/workspaces/w\", headers = {};\n"

// functionOf returns a function of an example of a page.
func functionOf(t *testing.T, about, name string) string {
	t.Helper()
	text, err := os.ReadFile("../../../docs/guides/clients/" + about + ".md")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`(?ms)^async function ` + name + `\(.*?^}$`).Find(text)
	if found == nil {
		t.Fatalf("%s has no function %s", about, name)
	}
	return string(found)
}

// bundle makes one script of files, the first of which is main.tsx, and of the packages that they
// import.
func bundle(t *testing.T, files map[string]string) []byte {
	t.Helper()
	const dir = "../../../compat/clients"
	install(t, dir)
	packages, err := filepath.Abs(filepath.Join(dir, "node_modules"))
	if err != nil {
		t.Fatal(err)
	}
	at := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(at, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command(filepath.Join(packages, ".bin/esbuild"), "main.tsx", "--bundle", "--format=esm", "--jsx=automatic",
		`--define:process.env.NODE_ENV="production"`, "--log-level=warning")
	cmd.Dir, cmd.Env = at, append(os.Environ(), "NODE_PATH="+packages)
	var errs record
	cmd.Stderr = &errs
	script, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, errs.bytes())
	}
	return script
}
