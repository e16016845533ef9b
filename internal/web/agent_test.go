package web

import (
	"slices"
	"strings"
	"testing"

	"github.com/parley-server/parley/internal/store/account"
	"github.com/parley-server/parley/internal/store/agent"
	"github.com/parley-server/parley/internal/store/apikey"
)

// TestAgentIsEdited saves a draft, publishes it and rolls back. A change of another administrator
// in between is not overwritten, and a viewer has no form.
func TestAgentIsEdited(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := w.signIn(t, account.NewUser{Email: "edda@halden.example", Name: "Edda Berg"}, apikey.Editor)
	address := w.URL + "/w/demo/agent"
	published := func(want string) {
		t.Helper()
		ag, err := w.app.srv.Agents.Find(t.Context(), w.Workspace.ID, "")
		if err != nil {
			t.Fatal(err)
		}
		v, err := w.app.srv.Agents.Version(t.Context(), ag, agent.Published)
		if err != nil || v.Instructions != want {
			t.Errorf("published %q, %v; want %q", v.Instructions, err, want)
		}
	}
	const first = "You answer freight forwarders.\n\nShort sentences.\n"
	p.Go(address)
	p.Fill("#f-instructions", first)
	if n := len(p.MustElements("[value=publish]")); n != 0 {
		t.Error("an agent without a draft can be published")
	}
	p.Press("button", "Save draft")
	p.Fill("[name=note]", "The first text")
	p.Press("button.primary", "Publish v2")
	p.See(".note", "Version 2 published")
	published(first)
	p.Fill("#f-instructions", "You answer freight forwarders <b>kindly</b>.\n\nShort sentences.\n")
	p.Press("button", "Save draft")
	p.See(".note", "Draft saved")
	p.See(".diff ins", "<b>kindly</b>")
	p.Review("agent-draft")
	published(first)

	other := agent.Edit{Workspace: w.Workspace.ID, Author: "cli:anna"}
	if _, err := w.app.srv.Agents.SaveDraft(t.Context(), other, func(d agent.Definition) (agent.Definition, error) {
		d.Instructions = "Another text."
		return d, nil
	}); err != nil {
		t.Fatal(err)
	}
	p.Press("button.primary", "Publish v3")
	p.See(".note.bad", "changed by another administrator")
	if text := p.MustElement("#f-instructions").MustProperty("value").Str(); !strings.Contains(text, "kindly") {
		t.Errorf("the text of the form is lost: %q", text)
	}
	published(first)

	p.Go(address)
	p.Fill("#f-fallback_models", "openai/gpt-5-mini x")
	p.Press("button", "Save draft")
	p.See(".err", "is not the name of a model")
	p.Go(address)
	p.Fill("#f-max_turns", "1000")
	p.Press("button", "Save draft")
	p.See(".note.bad", "max_turns is 1 to 200")
	p.Go(address)
	p.Press("button.primary", "Publish v3")
	published("Another text.")
	p.Press(".vers a", "v2")
	p.Review("agent-version")
	p.Press("button.primary", "Roll back to v2")
	p.See(".note", "Version 4 published")
	published(first)

	p.Go(address)
	p.Fill("#f-model", "absent/model")
	p.Press("button", "Save draft")
	p.See(".err", "Its models are builtin/guide")

	p.Go(address)
	p.Press("a.btn", "New agent")
	p.Fill("#f-name", "Not a name")
	p.Press("button.primary", "Create agent")
	p.See(".err", "1 to 63 characters")
	p.Review("agent-new")
	p.Fill("#f-name", "support")
	p.Press("button.primary", "Create agent")
	p.See(".note", "Agent support created")
	if text := p.MustElement("#f-instructions").MustProperty("value").Str(); text != first {
		t.Errorf("the instructions of the new agent are %q", text)
	}
	p.Fill("#f-instructions", "A draft.")
	p.Press("button", "Save draft")
	p.Shot("agent-second")
	p.Press("a.btn", "Try")
	p.See("#composer", "Message to both")
	p.Fill("#msg", "@say <b>Hello</b>")
	p.See("#send", "Send to both").MustClick()
	for _, side := range []string{"#left", "#right"} {
		p.See(side+" .badge", "completed")
		p.See(side+" .prose", "<b>Hello</b>")
	}
	p.Review("agent-try")
	var versions []int32
	if err := w.Pool.QueryRow(t.Context(),
		"SELECT array_agg(agent_version ORDER BY agent_version) FROM turns WHERE agent = 'support'").Scan(&versions); err != nil ||
		!slices.Equal(versions, []int32{0, 1}) {
		t.Errorf("the versions of the turns are %v, %v", versions, err)
	}
	p.Go(address + "?agent=support")
	p.Press("a.danger", "Delete")
	p.Shot("agent-delete")
	p.Press("button.fill", "Delete agent")
	p.See(".note", "Agent support deleted")
	viewer := w.signIn(t, account.NewUser{Email: "vera@halden.example", Name: "Vera Holm"}, apikey.Viewer)
	viewer.Go(address)
	viewer.See("h2", "Versions")
	if n := len(viewer.MustElements("main button:not([hidden]), header .primary")); n != 0 {
		t.Errorf("a viewer has %d buttons", n)
	}
}
