package httpapi

import (
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/google/uuid"
	"github.com/gorilla/mux"

	"github.com/parley-server/parley/internal/apikey"
	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/session"
	"github.com/parley-server/parley/internal/workspace"
)

// handler answers one operation. It writes only on success.
type handler func(http.ResponseWriter, *request) error

// request is a request that has passed the guard.
type request struct {
	*http.Request
	op        *operation
	caller    apikey.Principal    // zero for public operations
	workspace workspace.Workspace // likewise
}

// session is the session that the path names. What is not an id names none.
func (r *request) session() (uuid.UUID, error) {
	text := mux.Vars(r.Request)["sessionId"]
	id, err := uuid.Parse(text)
	if err != nil || len(text) != 36 {
		return uuid.Nil, fault.New(fault.SessionNotFound, "No such session in this workspace: an id looks like %s.", uuid.Nil)
	}
	return id, nil
}

// router makes one route per path: methods are looked up behind it, so that every
// path knows its 405.
func (s *server) router(ops []*operation) http.Handler {
	r := mux.NewRouter().SkipClean(true).UseEncodedPath()
	paths := make(map[string]map[string]*operation)
	for _, op := range ops {
		if paths[op.path] == nil {
			paths[op.path] = make(map[string]*operation)
		}
		paths[op.path][op.method] = op
	}
	for _, path := range slices.Sorted(maps.Keys(paths)) { // a name goes before a {variable} in its place
		methods := paths[path]
		allow := []string{http.MethodOptions}
		for method := range methods {
			allow = append(allow, method)
		}
		if get, ok := methods[http.MethodGet]; ok {
			methods[http.MethodHead] = get
			allow = append(allow, http.MethodHead)
		}
		slices.Sort(allow)
		r.Path(path).Handler(s.path(methods, strings.Join(allow, ", ")))
	}
	r.NotFoundHandler = s.envelope(func(_ http.ResponseWriter, r *http.Request) error {
		return fault.New(fault.RouteNotFound, "There is nothing at this path. GET /api/v1/openapi lists what there is.")
	})
	r.MethodNotAllowedHandler = r.NotFoundHandler // unreachable: no route matches methods
	return r
}

// path answers all methods of one path.
func (s *server) path(methods map[string]*operation, allow string) http.Handler {
	return s.envelope(func(w http.ResponseWriter, r *http.Request) error {
		op := methods[r.Method]
		switch {
		case op != nil:
			return s.serve(w, r, op)
		case r.Method == http.MethodOptions:
			w.Header().Set("Allow", allow)
			w.WriteHeader(http.StatusNoContent)
			return nil
		}
		w.Header().Set("Allow", allow)
		return fault.New(fault.MethodNotAllowed, "This path allows %s.", allow)
	})
}

// serve lets a request pass the guard and hands it to its operation.
func (s *server) serve(w http.ResponseWriter, r *http.Request, op *operation) error {
	req := &request{Request: r, op: op}
	if !op.public() {
		if err := s.guard(w, req); err != nil {
			return err
		}
	}
	return op.handle(w, req)
}

// link completes the detail of TURN_IN_PROGRESS with where to read or end the turn.
func (s *server) link(r *request, t *session.ActiveTurn) {
	at := s.base(r.Request) + "/api/v1/workspaces/" + r.workspace.Slug + "/sessions/" + t.SessionID.String()
	t.EventsURL, t.CancelURL = at+"/events", at+"/cancel"
}

// base is the public address of the service: as configured, else as this connection
// shows it. Anybody can send X-Forwarded-* headers, so they count for nothing.
func (s *server) base(r *http.Request) string {
	if s.cfg.BaseURL != "" {
		return strings.TrimSuffix(s.cfg.BaseURL, "/")
	}
	scheme := "http"
	if r.TLS != nil {
		scheme = "https"
	}
	return scheme + "://" + r.Host
}
