package e2e_test

import (
	"testing"

	"github.com/parley-server/parley/internal/testing/slow"
	"github.com/parley-server/parley/internal/testing/wait"
)

// TestReloadPage runs the page of docs/guides/reload.md in a browser and reloads it in the middle
// of an answer, during an open approval and after the end.
func TestReloadPage(t *testing.T) {
	t.Parallel()
	slow.Test(t, "runs processes")
	found := example.FindStringSubmatch(readPage(t, "docs/guides/reload.md"))
	if found == nil {
		t.Fatal("the page has no example")
	}
	browser := browse(t)
	w := newWorld(t)
	s := w.serve(t, nil)
	address, _ := w.betweenPage(t, s.url, found[2])
	tab := browser.MustPage(address).MustWaitLoad()
	send := func(command string) {
		t.Helper()
		tab.MustEval(`command => { document.querySelector("input").value = command; document.querySelector("button").click() }`, command)
	}
	answer := `() => document.querySelector(".assistant:last-of-type")?.innerText ?? ""`

	send("@text 400 deltas of 12 bytes at 100/s")
	tab.MustWait(`() => (` + answer + `)().length > 600`)
	tab.MustReload()
	tab.MustWait(`() => (` + answer + `)().includes("399..")`)
	whole := tab.MustEval(answer).Str()
	if len(whole) < 400*12-1 || len(whole) > 400*12 {
		t.Errorf("the reloaded answer has %d characters, want %d", len(whole), 400*12)
	}
	wait.For(t, "the turn ends", func() bool {
		var active int
		err := w.pool.QueryRow(t.Context(), "SELECT count(*) FROM turns WHERE finished_at IS NULL").Scan(&active)
		return err == nil && active == 0
	})
	tab.MustReload()
	tab.MustWait(`whole => (`+answer+`)().trim() === whole.trim()`, whole)

	send("Ask me for an approval")
	asks := `() => (` + answer + `)().includes("parley approvals show")`
	tab.MustWait(asks)
	tab.MustReload()
	tab.MustWait(asks)
	id := tab.MustEval(`() => document.querySelector("main").innerText.match(/approvals show (\S+)/)[1]`).Str()
	if status, d := w.decide(t, s, question{DecideURL: "/api/workspaces/w/approvals/" + id + "/decide"}, "allow"); status != 200 {
		t.Fatalf("%d %+v", status, d)
	}
	tab.MustWait(`() => (` + answer + `)().includes("The call went through.")`)
}
