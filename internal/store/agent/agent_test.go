package agent_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"go.uber.org/goleak"

	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/store/agent"
	"github.com/parley-server/parley/internal/store/permission"
	"github.com/parley-server/parley/internal/store/workspace"
	"github.com/parley-server/parley/internal/testing/dbtest"
	"github.com/parley-server/parley/internal/testing/wait"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is a workspace with its agents.
type world struct {
	*testing.T
	pool       *pgxpool.Pool
	workspaces *workspace.Store
	agents     *agent.Store
	id         uuid.UUID
}

func newWorld(t *testing.T) world {
	pool := dbtest.New(t)
	w := world{t, pool, workspace.New(pool), agent.New(pool), uuid.Nil}
	made, err := w.workspaces.Add(t.Context(), "acme", workspace.Change{Instructions: new("Be kind."), MaxTurns: new(7)})
	if err != nil {
		t.Fatal(err)
	}
	w.id = made.ID
	return w
}

func (w world) edit(name string) agent.Edit {
	return agent.Edit{Workspace: w.id, Name: name, Author: "cli:anna"}
}

// version returns a version of an agent, "" being the default agent.
func (w world) version(name string, which agent.Which) agent.Version {
	w.Helper()
	a, err := w.agents.Find(w.Context(), w.id, name)
	if err != nil {
		w.Fatal(err)
	}
	v, err := w.agents.Version(w.Context(), a, which)
	if err != nil {
		w.Fatal(err)
	}
	return v
}

// instruct returns an edit of a draft that sets the instructions.
func instruct(text string) func(agent.Definition) (agent.Definition, error) {
	return func(d agent.Definition) (agent.Definition, error) {
		d.Instructions = text
		return d, nil
	}
}

func code(err error) fault.Code {
	if f := fault.From(err); f != nil {
		return f.Code
	}
	return ""
}

// TestTheDefaultAgentIsTheWorkspacesAgent changes each side and reads the other: servers of the
// release before read and write the workspace.
func TestTheDefaultAgentIsTheWorkspacesAgent(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	if v := w.version("", agent.Published); v.Number != 1 || v.Instructions != "Be kind." || v.Limits.MaxTurns != 7 ||
		v.Limits.HistoryTokens != nil {
		t.Errorf("a new workspace has the agent %+v", v)
	}
	if _, err := w.workspaces.Update(t.Context(), w.id, workspace.Change{Model: new("openai/x"), MaxRunning: new(3)}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.workspaces.Update(t.Context(), w.id, workspace.Change{MaxRunning: new(4)}); err != nil {
		t.Fatal(err)
	}
	if v := w.version("default", agent.Published); v.Number != 2 || v.Instructions != "Be kind." || v.Model == nil || *v.Model != "openai/x" {
		t.Errorf("a changed workspace has the agent %+v", v)
	}
	d := agent.Defaults()
	d.Instructions, d.Effort, d.Limits.MaxTurns = "Be quick.", new("low"), 9
	d.Tools = map[string]permission.Label{"read": permission.ReadOnly, "bash": permission.Changes}
	d.Rules = map[string]string{"bash": "deny"}
	if a, err := w.agents.PublishDefinition(t.Context(), w.edit(""), d, "Faster."); err != nil || a.Newest != 3 {
		t.Fatalf("%+v, %v", a, err)
	}
	if a, err := w.agents.PublishDefinition(t.Context(), w.edit(""), d, "Again."); err != nil || a.Newest != 3 {
		t.Errorf("publishing the published definition makes version %d, %v", a.Newest, err)
	}
	if row, err := w.workspaces.Find(t.Context(), "acme"); err != nil || row.Instructions != "Be quick." || row.Model != nil ||
		row.MaxTurns != 9 || row.MaxRunning != 4 {
		t.Errorf("after a publication the workspace is %+v, %v", row, err)
	}
	if _, err := w.pool.Exec(t.Context(), `UPDATE workspaces SET instructions = 'Old server.'`); err != nil {
		t.Fatal(err)
	}
	d.Instructions = "Old server."
	v := w.version("", agent.Published)
	if diff := cmp.Diff(d, v.Definition); diff != "" || v.Number != 4 {
		t.Errorf("an old server published version %d:\n%s", v.Number, diff)
	}
}

func TestADraftIsPublishedAndAnOlderVersionAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	if _, err := w.agents.Publish(t.Context(), w.edit(""), ""); code(err) != fault.UnknownAgentVersion {
		t.Errorf("published without a draft: %v", err)
	}
	a, err := w.agents.SaveDraft(t.Context(), w.edit(""), instruct("Draft one."))
	if err != nil || !a.HasDraft || a.Newest != 1 {
		t.Fatalf("%+v, %v", a, err)
	}
	if same, err := w.agents.SaveDraft(t.Context(), w.edit(""), instruct("Draft one.")); err != nil || same.Revision != a.Revision {
		t.Errorf("saving the same draft: %+v, %v", same, err)
	}
	if v := w.version("", agent.Draft); v.Number != 0 || v.Instructions != "Draft one." || v.Limits.MaxTurns != 7 || v.Author != "cli:anna" {
		t.Errorf("the draft is %+v", v)
	}
	if v := w.version("", agent.Published); v.Instructions != "Be kind." {
		t.Errorf("a draft changed the published version: %+v", v)
	}
	if a, err = w.agents.Publish(t.Context(), w.edit(""), "The first."); err != nil || a.HasDraft || a.Newest != 2 {
		t.Fatalf("%+v, %v", a, err)
	}
	if v := w.version("", agent.Published); v.Number != 2 || v.Instructions != "Draft one." || v.Note != "The first." {
		t.Errorf("published %+v", v)
	}
	if a, err = w.agents.Rollback(t.Context(), w.edit(""), 1, "Too short."); err != nil || a.Newest != 3 {
		t.Fatalf("%+v, %v", a, err)
	}
	if v := w.version("", 3); v.Instructions != "Be kind." || v.Author != "cli:anna" {
		t.Errorf("rolled back to %+v", v)
	}
	if _, err := w.agents.Rollback(t.Context(), w.edit(""), 4, ""); code(err) != fault.UnknownAgentVersion ||
		len(fault.From(err).Detail.Candidates) != 3 {
		t.Errorf("rolled back to a version that does not exist: %v", err)
	}
	list, err := w.agents.Versions(t.Context(), a, 0, 2)
	if err != nil || len(list) != 2 || list[0].Number != 3 || list[1].Number != 2 {
		t.Errorf("the history is %+v, %v", list, err)
	}
}

// TestTwoAdministratorsLoseNothing has two administrators change what both have read.
func TestTwoAdministratorsLoseNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	read, err := w.agents.Find(t.Context(), w.id, "")
	if err != nil {
		t.Fatal(err)
	}
	results := make(chan error)
	for _, text := range []string{"Anna's.", "Ben's."} {
		e := w.edit("")
		e.Revision = read.Revision
		go func() {
			_, err := w.agents.SaveDraft(t.Context(), e, instruct(text))
			results <- err
		}()
	}
	first, second := wait.Receive(t, "the first edit", results), wait.Receive(t, "the second edit", results)
	if (first == nil) == (second == nil) || code(first)+code(second) != fault.PreconditionFailed {
		t.Errorf("both edited one revision: %v, %v", first, second)
	}
}

func TestAgentsOfAWorkspace(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	d := agent.Defaults()
	d.Instructions = "Count."
	for _, name := range []string{"support", "analyst"} {
		if a, err := w.agents.Create(t.Context(), w.edit(name), d, "New."); err != nil || a.Newest != 1 || a.Default {
			t.Fatalf("%+v, %v", a, err)
		}
	}
	for name, want := range map[string]fault.Code{"support": fault.InvalidRequestBody, "No": fault.InvalidRequestBody,
		"": fault.InvalidRequestBody} {
		if _, err := w.agents.Create(t.Context(), w.edit(name), d, ""); code(err) != want {
			t.Errorf("created %q: %v", name, err)
		}
	}
	list, err := w.agents.List(t.Context(), w.id)
	if err != nil || len(list) != 3 || !list[0].Default || list[1].Name != "analyst" || list[2].Published != 1 {
		t.Fatalf("%+v, %v", list, err)
	}
	_, err = w.agents.Find(t.Context(), w.id, "suport")
	if f := fault.From(err); code(err) != fault.UnknownAgent || !cmp.Equal(f.Detail.Candidates, []string{"support"}) {
		t.Errorf("%v", err)
	}
	if err := w.agents.Delete(t.Context(), w.edit("default")); code(err) != fault.InvalidRequestBody {
		t.Errorf("deleted the default agent: %v", err)
	}
	if err := w.agents.Delete(t.Context(), w.edit("support")); err != nil {
		t.Fatal(err)
	}
	if _, err := w.agents.Find(t.Context(), w.id, "support"); code(err) != fault.UnknownAgent {
		t.Errorf("found a deleted agent: %v", err)
	}
	if _, err := w.agents.Create(t.Context(), w.edit("support"), d, ""); err != nil {
		t.Errorf("the name of a deleted agent: %v", err)
	}
}

func TestADefinitionIsRefusedWithEverythingThatIsWrong(t *testing.T) {
	t.Parallel()
	bad := agent.Definition{
		Instructions: "\x00", Model: new("gpt"), Effort: new("huge"), Limits: agent.Limits{MaxTurns: 201, HistoryTokens: new(-1),
			MaxCostUSD: new(-1.0)},
		Tools: map[string]permission.Label{"bsh": permission.Changes, "bash": permission.ReadOnly, "read": "reads"},
		Rules: map[string]string{"bash": "perhaps", "request_secret": "allow", "wikiread": "ask"},
	}
	var params []string
	for _, v := range bad.Violations(nil) {
		params = append(params, v.Param+" "+v.Suggestion)
	}
	want := []string{"/instructions ", "/model ", "/effort ", "/tools/bash ", "/tools/bsh bash", "/tools/read ",
		"/rules/bash ", "/rules/request_secret ", "/rules/wikiread wiki_read",
		"/limits/max_response_seconds ", "/limits/max_turns ", "/limits/history_tokens ", "/limits/max_cost_usd "}
	if diff := cmp.Diff(want, params); diff != "" {
		t.Error(diff)
	}
	if vs := agent.Defaults().Violations(nil); len(vs) > 0 {
		t.Errorf("the defaults are rejected: %+v", vs)
	}
}

func TestTheDifferenceOfTwoVersions(t *testing.T) {
	t.Parallel()
	before, after := agent.Defaults(), agent.Defaults()
	before.Instructions, after.Instructions = "one\ntwo\nthree\nfour\n", "one\n2\nthree\nfour\nfive"
	after.Model = new("openai/x")
	var lines []string
	for _, l := range agent.Diff(before, after) {
		lines = append(lines, string(l.Op)+l.Text)
	}
	want := `-model: null|+model: "openai/x"| one|-two|+2| three| four|+five`
	if got := strings.Join(lines, "|"); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if lines := agent.Diff(before, before); len(lines) != 0 {
		t.Errorf("a version differs from itself: %v", lines)
	}
}

// TestNoVersionIsSavedThatIsNotAccepted checks that the server's own rule holds for each way to a
// version: a new agent, a draft, its publication, a definition in one step, and an older version.
func TestNoVersionIsSavedThatIsNotAccepted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	if _, err := w.agents.SaveDraft(t.Context(), w.edit(""), instruct("Be quick.")); err != nil {
		t.Fatal(err)
	}
	refusal := errors.New("not here")
	strict := agent.New(w.pool)
	strict.Accept = func(agent.Definition) error { return refusal }
	for name, save := range map[string]func() error{
		"Create": func() error {
			_, err := strict.Create(t.Context(), w.edit("support"), agent.Defaults(), "")
			return err
		},
		"SaveDraft": func() error {
			_, err := strict.SaveDraft(t.Context(), w.edit(""), instruct("Be slow."))
			return err
		},
		"Publish": func() error { _, err := strict.Publish(t.Context(), w.edit(""), ""); return err },
		"PublishDefinition": func() error {
			_, err := strict.PublishDefinition(t.Context(), w.edit(""), agent.Defaults(), "")
			return err
		},
		"Rollback": func() error { _, err := strict.Rollback(t.Context(), w.edit(""), 1, ""); return err },
	} {
		if err := save(); !errors.Is(err, refusal) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if list, err := w.agents.List(t.Context(), w.id); err != nil || len(list) != 1 || list[0].Newest != 1 {
		t.Errorf("the agents are %+v, %v", list, err)
	}
}
