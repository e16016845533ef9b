package web

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/go-rod/rod/lib/input"
	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/testing/browser"
)

// TestPlaygroundSendsInEveryWay sends a file, a message behind a running turn, one that is stopped,
// one whose answer comes as a whole and one with a schema, rates an answer, and goes on after the
// events of its session were erased.
func TestPlaygroundSendsInEveryWay(t *testing.T) {
	t.Parallel()
	w := playWorld(t, 0)
	p := w.openPlay(t, "chat")
	count := func(want int, sql string, args ...any) {
		t.Helper()
		var n int
		if err := w.Pool.QueryRow(t.Context(), sql, args...).Scan(&n); err != nil || n != want {
			t.Errorf("%d, want %d: %s %v", n, want, sql, err)
		}
	}
	press := func(selector string) { find(t, p, selector).MustClick() }

	file := filepath.Join(t.TempDir(), "Reisekosten übersicht.txt")
	if err := os.WriteFile(file, []byte("Trains first."), 0o600); err != nil {
		t.Fatal(err)
	}
	find(t, p, "#file").MustSetFiles(file)
	p.See("#p-files .file", "13 B")
	p.Review("chat-attachment")
	send(t, p, "@say Read.")
	p.See(".msg-u .file", "Reisekosten übersicht.txt")
	p.See(".prose", "Read.")
	count(1, "SELECT count(*) FROM turn_files")

	send(t, p, "@call gate {}\n@say The first.")
	w.Gate.Await(t)
	find(t, p, "#msg[placeholder^=Queue]")
	send(t, p, "@say The second.")
	p.MustWait(`() => document.querySelectorAll(".msg-u").length === 3`)
	count(1, "SELECT count(*) FROM turns WHERE state = 'lined_up'")
	w.Gate.Leave <- struct{}{}
	p.See(".prose", "The first.")
	p.See(".prose", "The second.")
	p.See("#state", "done")

	send(t, p, "@call gate {}\n@say Never.")
	w.Gate.Await(t)
	press("#stop:not([hidden])")
	p.See("#state", "canceled")
	count(1, "SELECT count(*) FROM turns WHERE state = 'canceled'")

	press("#show-user")
	find(t, p, "#mode").MustSelect("Blocking")
	send(t, p, "@say As a whole.")
	p.See(".prose", "As a whole.")
	p.See("#state", "done")
	find(t, p, "#mode").MustSelect("Stream")

	press(".msgs > :last-child [aria-label='Bad answer']")
	find(t, p, "[name=note]").MustInput("Too short.")
	p.Keyboard.MustType(input.Enter)
	p.See("#say", "Note stored.")
	find(t, p, ".msgs > :last-child [aria-label='Bad answer'][aria-pressed=true]")
	count(2, "SELECT count(*) FROM events WHERE kind = 'feedback' AND data->>'rating' = 'bad'")
	count(1, "SELECT count(*) FROM events WHERE kind = 'feedback' AND data->>'note' = 'Too short.'")

	press("#show-schema")
	find(t, p, "#schema").MustInput(`{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}`)
	send(t, p, "Count.")
	p.See("[aria-label='Structured result']", `"n"`)
	p.See("#state", "done")
	p.Review("chat-structured")
	find(t, p, "#schema").MustSelectAllText().MustInput("")
	w.equal(t, p)
	p.MustReload()
	find(t, p, ".msgs [aria-label='Bad answer'][aria-pressed=true]")
	w.equal(t, p)

	w.loseEvents(t, p)
}

// loseEvents erases the session while a turn runs. Its stream ends, and the page offers a new
// session.
func (w *world) loseEvents(t *testing.T, p *browser.Page) {
	t.Helper()
	send(t, p, "@call gate {}\n@say Lost.")
	w.Gate.Await(t)
	p.See("#live", "live")
	var id uuid.UUID
	if err := w.Pool.QueryRow(t.Context(), "SELECT id FROM sessions").Scan(&id); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Sessions.EraseContent(t.Context(), id, "test"); err != nil {
		t.Fatal(err)
	}
	p.See("#state", "session gone")
	p.Review("chat-gone")
	p.See("#problem .btn", "Start a new session").MustClick()
	w.Gate.Leave <- struct{}{}
	send(t, p, "@say Anew.")
	p.See(".prose", "Anew.")
	var n int
	if err := w.Pool.QueryRow(t.Context(), "SELECT count(*) FROM sessions").Scan(&n); err != nil || n != 2 {
		t.Errorf("%d sessions, %v", n, err)
	}
}
