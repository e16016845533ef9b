package web

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/server"
	"github.com/parley-server/parley/internal/server/request"
	"github.com/parley-server/parley/internal/session"
	"github.com/parley-server/parley/internal/turn"
)

// inbox is the data of the approvals page.
type inbox struct {
	Tab    string // pending, answered or expired
	Asks   []ask
	Recent []ask // answered last; only beside pending ones
	One    bool  // the page of a single request
	Older  string
}

const inboxPage = 20

// approvalsPage lists the requests in one of three states.
func (a *App) approvalsPage(w http.ResponseWriter, p *page) error {
	ctx, k := p.Context(), newAsker(p)
	d := inbox{Tab: "pending"}
	if tab := p.URL.Query().Get("status"); tab == "answered" || tab == "expired" {
		d.Tab = tab
	}
	cursor := p.URL.Query().Get("cursor")
	statuses := map[string][]string{"pending": {"pending"}, "expired": {"expired", "canceled"}, "answered": {"allowed", "denied",
		"provided", "skipped"}}
	var err error
	if d.Asks, d.Older, err = k.list(ctx, statuses[d.Tab], cursor, inboxPage); err != nil {
		return err
	}
	if d.Tab == "pending" {
		slices.SortStableFunc(d.Asks, func(a, b ask) int { return a.ExpiresAt.Compare(b.ExpiresAt) })
		if d.Recent, _, err = k.list(ctx, statuses["answered"], "", 5); err != nil {
			return err
		}
	}
	return a.render(w, p, "approvals", d)
}

// list returns a page of requests in any of these states, newest first, and the next cursor.
func (k *asker) list(ctx context.Context, statuses []string, cursor string, n int) (asks []ask, next string, err error) {
	q := session.ApprovalQuery{Limit: n, Cursor: cursor}
	if len(statuses) == 1 {
		q.Status = statuses[0]
	}
	for range 5 { // the states are one index; other states in between are few
		found, err := k.App.srv.Sessions.Approvals(ctx, k.Workspace.ID, q)
		if err != nil {
			return nil, "", err
		}
		for _, a := range found.Data {
			if !slices.Contains(statuses, a.Status) {
				continue
			}
			card, err := k.card(ctx, a)
			if err != nil {
				return nil, "", err
			}
			asks = append(asks, card)
		}
		if found.NextCursor == nil {
			return asks, "", nil
		}
		q.Cursor = *found.NextCursor
		if len(asks) >= n {
			break
		}
	}
	return asks, q.Cursor, nil
}

// approvalID returns the request in the path.
func (p *page) approvalID() (uuid.UUID, error) {
	id, ok := request.ID(p.PathValue("approval"))
	if !ok {
		return id, fault.New(fault.ApprovalNotFound, "The approval does not exist in this workspace.")
	}
	return id, nil
}

// one returns the card of the request in the path.
func (k *asker) one(ctx context.Context) (ask, error) {
	id, err := k.approvalID()
	if err != nil {
		return ask{}, err
	}
	found, err := k.App.srv.Sessions.Approval(ctx, k.Workspace.ID, id)
	if err != nil {
		return ask{}, err
	}
	return k.card(ctx, found)
}

// approvalPage shows one request.
func (a *App) approvalPage(w http.ResponseWriter, p *page) error {
	card, err := newAsker(p).one(p.Context())
	if err != nil {
		return err
	}
	tab := "pending"
	if card.Status != tab {
		tab = "answered"
	}
	return a.render(w, p, "approvals", inbox{Tab: tab, Asks: []ask{card}, One: true})
}

// approvalCard returns one request as data.
func (a *App) approvalCard(w http.ResponseWriter, p *page) error {
	card, err := newAsker(p).one(p.Context())
	if err != nil {
		return err
	}
	return server.WriteJSON(w, http.StatusOK, card)
}

// decided is the response to a script: the request as it is now.
type decidedCard struct {
	ask
	Elsewhere bool `json:"elsewhere"` // another answer came first, or the time was over
}

// decideApproval answers a request. A form leads back to the inbox; a script gets the card.
func (a *App) decideApproval(w http.ResponseWriter, p *page) error {
	answer, err := p.answer()
	if err != nil {
		return err
	}
	d, err := a.srv.Turns.Decide(p.Context(), p.Workspace.ID, answer)
	elsewhere := err == nil && d.Already && (d.DecidedBy == nil || d.DecidedBy.KeyID != answer.Key)
	if f := fault.From(err); f != nil && (f.Code == fault.ApprovalAlreadyDecided || f.Code == fault.ApprovalExpired) {
		elsewhere, err = true, nil
	}
	if err != nil {
		return err
	}
	card, err := newAsker(p).one(p.Context())
	if err != nil {
		return err
	}
	if !strings.Contains(p.Header.Get("Accept"), "text/html") {
		return server.WriteJSON(w, http.StatusOK, decidedCard{card, elsewhere})
	}
	if card.Answer != nil {
		words := card.Answer.Word + " " + card.Answer.Rest + "."
		if elsewhere {
			words = "This was answered before. " + words
		}
		p.flash(w, words)
	}
	return p.redirect(w, "/w/"+p.Workspace.Slug+"/approvals")
}

// answer parses the form of a card.
func (p *page) answer() (turn.Answer, error) {
	id, err := p.approvalID()
	if err != nil {
		return turn.Answer{}, err
	}
	field := func(name, form string) request.Member {
		return request.Member{Name: name, Value: request.QuoteText(p.PostForm.Get(form))}
	}
	var c request.Checks
	var ans turn.Answer
	switch word := p.PostForm.Get("decision"); word {
	case "provide", "skip":
		body := []request.Member{field("action", "decision")}
		if word == "provide" {
			body = append(body, field("value", "value"))
		}
		ans = c.Secret(body)
	default:
		body := []request.Member{field("decision", "decision")}
		if word == "allow" && p.PostForm.Get("always") != "" {
			body = append(body, field("allowlist_pattern", "pattern"))
		}
		if word == "deny" && p.PostForm.Get("reason") != "" {
			body = append(body, field("reason", "reason"))
		}
		ans = c.Decision(body, request.DecisionFields)
	}
	if err := c.Err(); err != nil {
		return ans, err
	}
	ans.Approval, ans.Key, ans.Scopes, ans.Actor = id, p.member(), p.Scopes.Expand().Strings(), p.Visitor.Name
	return ans, nil
}

// member returns the id under which the visitor's answers are recorded.
func (p *page) member() string { return p.Visitor.ID }
