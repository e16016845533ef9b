package web

import (
	"errors"
	"net/http"

	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/store/apikey"
)

// webhookView is the page of the webhook_token.
type webhookView struct {
	Token *apikey.Key // nil: there is none
	Text  string      // of a new token, shown once
	Ask   string      // asks before the token is rolled or revoked
}

func (a *App) webhookPage(w http.ResponseWriter, p *page) error {
	return a.showWebhook(w, p, "")
}

func (a *App) showWebhook(w http.ResponseWriter, p *page, text string) error {
	view := webhookView{Text: text}
	k, err := a.srv.Keys.WebhookToken(p.Context(), p.Workspace.ID)
	if err != nil && !errors.Is(err, apikey.ErrNotFound) {
		return err
	}
	if err == nil {
		view.Token = &k
		if ask := p.URL.Query().Get("ask"); p.Can("admin") && (ask == "roll" || ask == "revoke") {
			view.Ask = ask
		}
	}
	return a.render(w, p, "webhook", view)
}

// changeWebhook serves the forms of the page. A workspace has one token at most, so the old one ends
// when a new one is created.
func (a *App) changeWebhook(w http.ResponseWriter, p *page) error {
	do := newForm(p).Value("do")
	if do != "create" && do != "roll" && do != "revoke" {
		return unknownForm()
	}
	if do != "create" {
		if _, err := a.srv.Keys.RevokeWebhookToken(p.Context(), p.Workspace.ID); err != nil && !errors.Is(err, apikey.ErrNotFound) {
			return err
		}
	}
	if do == "revoke" {
		p.flash(w, "Token revoked. Its clients cannot use the workspace any more.")
		return p.redirect(w, "/w/"+p.Workspace.Slug+"/settings/developer/webhook")
	}
	_, text, err := a.srv.Keys.CreateWebhookToken(p.Context(), p.Workspace.ID)
	if errors.Is(err, apikey.ErrOnlyOne) {
		return fault.New(fault.ObjectConflict, "The workspace has a webhook_token already. Roll it to get another one.")
	}
	if err != nil {
		return err
	}
	return a.showWebhook(w, p, text)
}
