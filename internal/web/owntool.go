package web

import (
	"bytes"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/store/permission"
	"github.com/parley-server/parley/internal/store/toolset"
	"github.com/parley-server/parley/internal/tool"
)

// ownToolView is the page of a tool of the workspace's own.
type ownToolView struct {
	ownToolRow
	Server   toolServerRow
	Shown    toolset.Definition // the accepted one, or the first that is offered
	Schema   string
	Diff     textDiff // from the accepted definition to the offered one
	Verdicts []option
	Test     *toolTest
}

// toolTest is the form of a test call, with its result.
type toolTest struct {
	Form   *form
	Fields []inputField // nil: the input is written as JSON
	JSON   bool         // the user has chosen JSON
	Schema string       // identifies the definition that the form is made from
	Result *tool.Result
	Took   time.Duration
}

// Output is the result, with line breaks in JSON.
func (t *toolTest) Output() string {
	if s := strings.TrimSpace(t.Result.Output); strings.HasPrefix(s, "{") || strings.HasPrefix(s, "[") {
		return indented(json.RawMessage(s))
	}
	return t.Result.Output
}

// Formless reports whether the tool has no input.
func (t *toolTest) Formless() bool { return t.Fields != nil && len(t.Fields) == 0 }

// Hints are what the server says about the tool.
func (v ownToolView) Hints() (list []string) {
	h := v.Shown.Annotations
	if h.ReadOnly {
		list = append(list, "reads only")
	}
	if h.Destructive != nil && *h.Destructive {
		list = append(list, "may destroy")
	}
	if h.Idempotent {
		list = append(list, "repeatable")
	}
	if h.OpenWorld != nil && *h.OpenWorld {
		list = append(list, "reaches others")
	}
	return list
}

func (a *App) ownToolPage(w http.ResponseWriter, p *page) error {
	return a.showOwnTool(w, p, http.StatusOK, nil)
}

// findOwnTool returns the tool in the path with its server. The path has the name that models see,
// which is unique in the workspace.
func (a *App) findOwnTool(p *page) (toolset.Server, toolset.Tool, error) {
	server, err := a.Toolset.Find(p.Context(), p.Workspace.ID, p.PathValue("server"))
	if err != nil {
		return server, toolset.Tool{}, missingPage(err)
	}
	i := slices.IndexFunc(server.Tools, func(t toolset.Tool) bool { return t.Name == p.PathValue("tool") })
	if i < 0 {
		return server, toolset.Tool{}, fault.New(fault.RouteNotFound, "The tool server %s has no tool %.80q.", server.Name, p.PathValue("tool"))
	}
	return server, server.Tools[i], nil
}

func (a *App) showOwnTool(w http.ResponseWriter, p *page, status int, test *toolTest) error {
	server, t, err := a.findOwnTool(p)
	if err != nil {
		return err
	}
	facts, err := a.readToolFacts(p)
	if err != nil {
		return err
	}
	view := ownToolView{ownToolRow: facts.ownRow(t), Server: toolServerRow{Server: server}, Test: test,
		Verdicts: append([]option{{"", "As its label says"}}, verdictOptions[1:]...)}
	switch {
	case t.Definition != nil:
		view.Shown = *t.Definition
	case t.Offered != nil:
		view.Shown = *t.Offered
	}
	view.Schema = indented(view.Shown.Schema)
	if t.Offered != nil && t.Definition != nil {
		view.Diff = diffTools(*t.Definition, *t.Offered)
	}
	if view.Test == nil && server.Enabled && t.State() == toolset.Usable && p.Can("config:write") {
		view.Test = newToolTest(*t.Definition, emptyForm(), p.URL.Query().Get("input") == "json")
	}
	return a.renderStatus(w, p, status, "owntool", view)
}

func newToolTest(d toolset.Definition, f *form, asJSON bool) *toolTest {
	test := &toolTest{Form: f, JSON: asJSON, Schema: fingerprint(d.Schema)}
	if !asJSON {
		test.Fields = inputFields(d.Schema)
	}
	return test
}

// indented returns JSON with line breaks.
func indented(raw json.RawMessage) string {
	var b bytes.Buffer
	if json.Indent(&b, raw, "", "  ") != nil {
		return string(raw)
	}
	return b.String()
}

// diffTools returns what a server has changed in the definition of a tool.
func diffTools(before, after toolset.Definition) (d textDiff) {
	for _, part := range []struct{ title, before, after string }{
		{"Title", before.Title, after.Title}, {"Description", before.Description, after.Description},
		{"Input schema", indented(before.Schema), indented(after.Schema)}, {"Hints of the server", hintText(before), hintText(after)},
	} {
		if part.before != part.after {
			of := diffDocuments(part.title, part.before, part.after)
			d.Rows, d.Added, d.Removed = append(d.Rows, of.Rows...), d.Added+of.Added, d.Removed+of.Removed
		}
	}
	return d
}

func hintText(d toolset.Definition) string {
	raw, err := json.Marshal(d.Annotations)
	if err != nil {
		return ""
	}
	return indented(raw)
}

// changeOwnTool serves the forms of a tool.
func (a *App) changeOwnTool(w http.ResponseWriter, p *page) error {
	server, t, err := a.findOwnTool(p)
	if err != nil {
		return err
	}
	ws, done := p.Workspace.ID, ""
	switch p.PostForm.Get("do") {
	case "accept":
		if _, err := a.Toolset.Accept(p.Context(), ws, server.Name, t.OwnName, p.PostForm.Get("hash")); err != nil {
			f := fault.From(err)
			if f == nil || f.Code != fault.PreconditionFailed && f.Code != fault.ObjectConflict {
				return err
			}
			p.flashBad(w, f.Message)
			break
		}
		done = "Accepted. The model sees this definition of " + t.Name + " from now on."
	case "settings":
		if err := a.saveOwnTool(p, server.Name, t); err != nil {
			return err
		}
		done = "Settings of " + t.Name + " saved."
	case "test":
		return a.testOwnTool(w, p, server, t)
	default:
		return unknownForm()
	}
	if done != "" {
		p.flash(w, done)
	}
	return p.redirect(w, "/w/"+p.Workspace.Slug+"/tools/servers/"+server.Name+"/"+t.Name)
}

// saveOwnTool sets the label of a tool, whether it is enabled, and its rule.
func (a *App) saveOwnTool(p *page, server string, t toolset.Tool) error {
	label, enabled := toolset.Label(p.PostForm.Get("label")), p.PostForm.Get("enabled") == "yes"
	verdict, ruled := permission.ParseVerdict(p.PostForm.Get("rule"))
	if !ruled && p.PostForm.Get("rule") != "" {
		return unknownForm()
	}
	if _, err := a.Toolset.SetTool(p.Context(), p.Workspace.ID, server, t.OwnName, &label, &enabled); err != nil {
		return err
	}
	if ruled {
		return a.Permissions.Set(p.Context(), p.Workspace.ID, t.Name, verdict)
	}
	return a.Permissions.Reset(p.Context(), p.Workspace.ID, t.Name)
}

// testOwnTool calls a tool with the input of the form, and shows the result.
func (a *App) testOwnTool(w http.ResponseWriter, p *page, server toolset.Server, t toolset.Tool) error {
	f := newForm(p)
	if t.Definition == nil || !server.Enabled || t.State() != toolset.Usable || f.Value("schema") != fingerprint(t.Definition.Schema) {
		p.flashBad(w, "The tool has changed since this page was opened. Nothing was called.")
		return p.redirect(w, "/w/"+p.Workspace.Slug+"/tools/servers/"+server.Name+"/"+t.Name)
	}
	test := newToolTest(*t.Definition, f, f.Value("input") == "json")
	input := test.input()
	if f.Failed() {
		return a.showOwnTool(w, p, http.StatusUnprocessableEntity, test)
	}
	begin := time.Now()
	res, err := a.TestTool(p.Context(), p.Workspace.ID, server.Name, t.OwnName, input)
	if err != nil {
		if err := f.take(err); err != nil {
			return err
		}
		return a.showOwnTool(w, p, http.StatusUnprocessableEntity, test)
	}
	test.Result, test.Took = &res, time.Since(begin)
	return a.showOwnTool(w, p, http.StatusOK, test)
}
