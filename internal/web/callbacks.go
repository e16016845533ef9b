package web

import (
	"net/http"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/server/request"
	"github.com/parley-server/parley/internal/store/callback"
)

const deliveriesOnPage = 50

var deliveryOptions = []option{{"", "Any status"}, {"pending", "Pending"}, {"delivered", "Delivered"}, {"failed", "Failed"}}

// deliveryWords are the class and the word of a delivery's status.
var deliveryWords = map[string][2]string{
	"pending": {"run", "Pending"}, "delivered": {"ok", "Delivered"}, "failed": {"bad", "Failed"}, "waiting": {"off", "Nothing reported yet"},
}

// callbacksView is the page of the callbacks of a workspace.
type callbacksView struct {
	List     []deliveryRow
	Secrets  []callback.SecretState
	Form     *form
	Statuses []option
	Overlaps []option
	Text     string // of a new signing secret, shown once
	Roll     bool   // asks for the overlap
	Pager    map[string]string
}

// deliveryRow is a delivery in the list.
type deliveryRow struct {
	callback.Summary
	State, Word string
}

func (a *App) callbacksPage(w http.ResponseWriter, p *page) error {
	return a.showCallbacks(w, p, "")
}

func (a *App) showCallbacks(w http.ResponseWriter, p *page, text string) error {
	q := p.URL.Query()
	view := callbacksView{Form: &form{Values: q, errs: map[string]string{}}, Statuses: deliveryOptions, Overlaps: overlapOptions,
		Text: text, Roll: text == "" && q.Get("roll") == "1" && p.Can("admin")}
	status := q.Get("status")
	if !slices.Contains(callback.Statuses, status) {
		status = ""
	}
	list, err := a.srv.Callbacks.List(p.Context(), p.Workspace.ID, status, q.Get("cursor"), deliveriesOnPage)
	if err != nil {
		return err
	}
	for _, d := range list.Data {
		words := deliveryWords[d.Status]
		view.List = append(view.List, deliveryRow{d, words[0], words[1]})
	}
	view.Pager = pagerOf(without(q, "roll"), list.NextCursor, plural(len(list.Data), "delivery", "deliveries"))
	if view.Secrets, err = a.srv.Callbacks.Secrets(p.Context(), p.Workspace.ID); err != nil {
		return err
	}
	return a.render(w, p, "callbacks", view)
}

// changeCallbacks rolls the signing secret. Its text is in this answer only.
func (a *App) changeCallbacks(w http.ResponseWriter, p *page) error {
	f := newForm(p)
	overlap, err := time.ParseDuration(f.Value("overlap"))
	if f.Value("do") != "roll" || err != nil || overlap < 0 || overlap > 7*24*time.Hour {
		return unknownForm()
	}
	text, err := a.srv.Callbacks.Rotate(p.Context(), p.Workspace.ID, overlap)
	if err != nil {
		return err
	}
	return a.showCallbacks(w, p, text)
}

// callbackView is the page of a callback with its deliveries and attempts.
type callbackView struct {
	callback.Callback
	State, Word string
	Words       map[string][2]string
}

func (a *App) callbackPage(w http.ResponseWriter, p *page) error {
	id, err := callbackID(p)
	if err != nil {
		return err
	}
	c, err := a.srv.Callbacks.Get(p.Context(), p.Workspace.ID, id)
	if err != nil {
		return err
	}
	words := deliveryWords[c.Status]
	return a.render(w, p, "callback", callbackView{c, words[0], words[1], deliveryWords})
}

// redeliver sends the newest report of a callback again.
func (a *App) redeliver(w http.ResponseWriter, p *page) error {
	id, err := callbackID(p)
	if err != nil {
		return err
	}
	if newForm(p).Value("do") != "redeliver" {
		return unknownForm()
	}
	_, ok, err := a.srv.Turns.Redeliver(p.Context(), p.Workspace.ID, id)
	if err != nil {
		return err
	}
	p.flash(w, map[bool]string{true: "The newest report is sent again now.", false: "Nothing has been reported to this address yet."}[ok])
	return p.redirect(w, "/w/"+p.Workspace.Slug+"/settings/callbacks/"+id.String())
}

// callbackID returns the callback in the path. A malformed id is not found.
func callbackID(p *page) (uuid.UUID, error) {
	id, ok := request.ID(p.PathValue("callback"))
	if !ok {
		return uuid.Nil, fault.New(fault.CallbackNotFound, "No such callback in this workspace.")
	}
	return id, nil
}
