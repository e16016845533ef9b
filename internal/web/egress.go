package web

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/toolenv"
)

const requestsOnPage = 50

// egressView is the page of the hosts that tools may reach.
type egressView struct {
	Policy   toolenv.Policy
	Form     *form
	Requests []requestRow
}

// requestRow is a request that a tool sent or was not allowed to send.
type requestRow struct {
	toolenv.Request
	State, Word string
}

// HasSession reports whether a turn sent the request. A check of a tool server has no session.
func (r requestRow) HasSession() bool { return r.SessionID != uuid.Nil }

var decisionWords = map[string][2]string{
	"sent": {"ok", "Sent"}, "refused_host": {"bad", "Host not listed"}, "refused_address": {"bad", "Address not public"},
	"refused_request": {"bad", "Invalid request"}, "refused_answer": {"bad", "Response withheld"}, "failed": {"warn", "No response"},
}

func (a *App) egressPage(w http.ResponseWriter, p *page) error {
	return a.showEgress(w, p, http.StatusOK, nil)
}

// showEgress renders the page. f is a form that was not accepted, or nil.
func (a *App) showEgress(w http.ResponseWriter, p *page, status int, f *form) error {
	view := egressView{Form: f}
	var err error
	if view.Policy, err = a.Runner.Policy(p.Context(), p.Workspace.ID); err != nil {
		return err
	}
	if view.Form == nil {
		view.Form = emptyForm("hosts", strings.Join(view.Policy.Hosts, "\n"), "public", strconv.FormatBool(view.Policy.Public), "seen",
			seenAt(view.Policy))
	}
	list, err := a.Runner.Requests(p.Context(), p.Workspace.ID, nil, requestsOnPage)
	if err != nil {
		return err
	}
	for _, r := range list {
		row := requestRow{r, "off", r.Decision}
		if words, ok := decisionWords[r.Decision]; ok {
			row.State, row.Word = words[0], words[1]
		}
		view.Requests = append(view.Requests, row)
	}
	return a.renderStatus(w, p, status, "egress", view)
}

// seenAt is the version of a policy in its form: a change of an older one is rejected.
func seenAt(policy toolenv.Policy) string {
	if policy.UpdatedAt.IsZero() {
		return "0"
	}
	return strconv.FormatInt(policy.UpdatedAt.UnixMicro(), 10)
}

// changeEgress serves the form of the egress page.
func (a *App) changeEgress(w http.ResponseWriter, p *page) error {
	f := newForm(p)
	seen, err := strconv.ParseInt(f.Value("seen"), 10, 64)
	if err != nil {
		return unknownForm()
	}
	policy := toolenv.Policy{Public: f.Value("public") == "true", Hosts: strings.Fields(f.Value("hosts"))}
	if _, err := a.Runner.SetPolicy(p.Context(), p.Workspace.ID, policy, new(time.UnixMicro(seen))); err != nil {
		if err := f.take(err, "hosts"); err != nil {
			return err
		}
		return a.showEgress(w, p, http.StatusUnprocessableEntity, f)
	}
	p.flash(w, "Saved. It applies to the next request of a tool.")
	return p.redirect(w, "/w/"+p.Workspace.Slug+"/settings/egress")
}
