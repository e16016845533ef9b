// Package web is the application in the browser: pages rendered on the server from templates, a
// style sheet and a few ES modules, all embedded.
//
// It promises: a page needs no JavaScript except the playground; every page has the same security
// headers and loads nothing from another origin; a route checks the role of the member before its
// handler runs; a form of another site is rejected. Its changes call the same methods of the stores
// as the API. It stores nothing itself.
package web

import (
	"context"
	"errors"
	"html/template"
	"net/http"
	"net/url"
	"sync"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/server"
	"github.com/parley-server/parley/internal/server/admin"
	"github.com/parley-server/parley/internal/sso"
	"github.com/parley-server/parley/internal/store/account"
	"github.com/parley-server/parley/internal/store/workspace"
	"github.com/parley-server/parley/internal/toolenv/workdir"
)

// Stores are the stores besides those of the server, and the identity provider.
type Stores struct {
	admin.Stores
	Folders  *workdir.Store
	Models   []string      // suggestions for the model of an agent
	Provider *sso.Provider // nil: passwords only
}

// App serves the pages.
type App struct {
	Stores
	srv      *server.Server // writes errors as pages
	json     *server.Server // writes errors in the envelope of the API
	pages    map[string]*template.Template
	assets   assets
	accounts *account.Store
	root     string // path of the public address, before every link
	known    map[string]bool
	guard    http.CrossOriginProtection
	manual   func() (*manual, error)
}

// New returns the routes of the application.
func New(srv *server.Server, stores Stores) (server.Routes, error) {
	a, err := newApp(srv, stores)
	if err != nil {
		return nil, err
	}
	return a.routes(), nil
}

func newApp(srv *server.Server, stores Stores) (*App, error) {
	if srv.Accounts == nil {
		return nil, errors.New("web: the server has no accounts")
	}
	if stores.CheckModel == nil {
		stores.CheckModel = func(context.Context, uuid.UUID, workspace.Change) error { return nil }
	}
	a := &App{Stores: stores, json: srv, accounts: srv.Accounts, root: rootOf(srv.BaseURL), known: make(map[string]bool)}
	a.srv = srv.WithErrorPage(a.errorPage)
	a.manual = sync.OnceValues(a.openManual)
	var err error
	if a.assets, err = loadAssets(); err != nil {
		return nil, err
	}
	if a.pages, err = parsePages(); err != nil {
		return nil, err
	}
	for _, rt := range table() {
		a.known[rt.path] = true
	}
	return a, nil
}

// rootOf returns the path of the public address, without a slash at its end.
func rootOf(base string) string {
	u, err := url.Parse(base)
	if err != nil {
		return ""
	}
	for len(u.Path) > 0 && u.Path[len(u.Path)-1] == '/' {
		u.Path = u.Path[:len(u.Path)-1]
	}
	return u.Path
}
