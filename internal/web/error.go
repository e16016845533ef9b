package web

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/server"
)

// failure is what the page of an error shows.
type failure struct {
	Status  int
	Title   string
	Message string
	Code    string
	Request string
}

var errorTitles = map[int]string{
	http.StatusForbidden:       "Not allowed",
	http.StatusNotFound:        "Page not found",
	http.StatusTooManyRequests: "Too many requests",
}

// errorPage responds with an error in the look of the application.
func (a *App) errorPage(w http.ResponseWriter, r *http.Request, f *fault.Error) {
	body := server.FailureOf(f)
	if body.RetryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(body.RetryAfter))
	}
	status := f.Code.Status()
	view := failure{Status: status, Title: errorTitles[status], Message: f.Message, Code: string(f.Code),
		Request: w.Header().Get("X-Request-Id")}
	switch {
	case view.Title == "" && status >= 500:
		view.Title = "This page failed"
	case view.Title == "":
		view.Title = "This did not work"
	}
	p := &page{Request: r, App: a}
	if err := a.renderStatus(w, p, status, "error", view); err != nil {
		a.srv.Log.ErrorContext(r.Context(), "render an error page", "err", err)
		w.WriteHeader(http.StatusInternalServerError)
	}
}

// front leads from / to the first page of the visitor. Everything else that has no handler is
// missing.
func (a *App) front(w http.ResponseWriter, r *http.Request) error {
	if r.URL.Path != "/" {
		return fault.New(fault.RouteNotFound, "The path does not exist. GET /api/v1/openapi lists all paths.")
	}
	return a.serve(w, r, route{path: "/", get: (*App).start})
}

// wantsPage reports whether a request was sent by a browser that navigates.
func wantsPage(r *http.Request) bool {
	return strings.Contains(r.Header.Get("Accept"), "text/html") && !strings.HasPrefix(r.URL.Path, "/api/")
}
