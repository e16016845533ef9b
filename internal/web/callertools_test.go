package web

import (
	"strings"
	"testing"

	"github.com/go-rod/rod/lib/input"

	"github.com/parley-server/parley/internal/testing/apitest"
)

// TestCallersToolsInThePlayground brings tools along, answers their calls in the playground with the
// keyboard, and reads in the session who answered.
func TestCallersToolsInThePlayground(t *testing.T) {
	t.Parallel()
	w := playWorld(t, 0)
	p := w.openPlay(t, "chat")
	p.Allow("status of 400") // the tool without a valid name
	find(t, p, "#show-tools").MustClick()
	find(t, p, "#tools:focus").MustInput(`[{"name":"no name"}]`)
	send(t, p, "Hello")
	p.See("#tools-err", "name")
	hostile := apitest.Quote(strings.Join(corpus, " "))
	tools := `[{"name":"get_weather","description":` + hostile + `,"input_schema":{"type":"object"}},{"name":"lookup"}]`
	find(t, p, "#tools").MustSelectAllText().MustInput(tools)
	find(t, p, "#msg").MustEval(`function (text) { this.value = text; }`,
		"@call get_weather {\"city\":"+hostile+"}\n@say Fine.\n@call lookup {}\n@say Over.")
	find(t, p, "#send").MustClick()
	p.See(".ask h2", "Results needed")
	p.See("#state", "waiting for your tools")
	unhurt(t, p)
	p.Review("chat-tools")

	p.Reload()
	p.Loaded()
	p.See(".ask h2", "Results needed")
	find(t, p, "#log").MustFocus()
	p.Keyboard.MustType(input.KeyG, input.KeyA)
	find(t, p, ".ask:focus")
	p.Keyboard.MustType(input.Tab)
	find(t, p, ".ask textarea:focus")
	p.Keyboard.MustType(input.Tab, input.Tab, input.Enter)
	p.See(".ask .err", "Enter the result")
	find(t, p, ".ask textarea:focus").MustInput(`{"celsius":21,"text":` + hostile + `}`)
	p.Keyboard.MustType(input.Tab, input.Tab, input.Enter)
	p.See(".prose", "Fine.")
	p.See(".asked", "Results of 1 of your tools")
	find(t, p, ".ask textarea").MustInput("The office is closed.")
	find(t, p, ".ask [type=checkbox]").MustClick()
	find(t, p, ".ask button.primary").MustClick()
	p.See(".prose", "Over.")
	p.See("#state", "done")
	p.MustWait(`() => !document.querySelector(".ask")`)
	unhurt(t, p)

	p.Go(w.URL + "/w/demo/sessions/" + p.Path()[strings.LastIndex(p.Path(), "/")+1:])
	p.See(".rows li", "get_weather")
	p.See(".rows li", "answered by Anna Lindqvist")
	if ok, failed := len(p.MustElements(".rows .badge.ok")), len(p.MustElements(".rows .badge.bad")); ok != 1 || failed != 1 {
		t.Errorf("%d calls are shown as ok and %d as failed, want one of each", ok, failed)
	}
	unhurt(t, p)
	p.Review("session-calls")
}
