package rest

import (
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/google/uuid"
	"github.com/gorilla/mux"

	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/server"
	"github.com/parley-server/parley/internal/server/request"
	"github.com/parley-server/parley/internal/session"
	"github.com/parley-server/parley/internal/store/workspace"
)

// handler answers one operation. It writes only on success.
type handler func(http.ResponseWriter, *apiRequest) error

// apiRequest is a apiRequest that has passed the guard.
type apiRequest struct {
	*http.Request
	op     *operation
	caller server.Caller // zero for public operations
}

// session is the session that the path names. What is not an id names none.
func (r *apiRequest) session() (uuid.UUID, error) {
	id, ok := request.ID(mux.Vars(r.Request)["sessionId"])
	if !ok {
		return uuid.Nil, fault.New(fault.SessionNotFound, "The session id in the address is not valid. "+
			"An id looks like %s; the list of sessions has those that exist.", uuid.Nil)
	}
	return id, nil
}

// router makes one route per path: methods are looked up behind it, so that every
// path knows its 405.
func (s *api) router(ops []*operation) http.Handler {
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
	r.NotFoundHandler = s.door.Handler(func(_ http.ResponseWriter, r *http.Request) error {
		return fault.New(fault.RouteNotFound, "There is nothing at this path. GET /api/v1/openapi lists what there is.")
	})
	r.MethodNotAllowedHandler = r.NotFoundHandler // unreachable: no route matches methods
	return r
}

// path answers all methods of one path.
func (s *api) path(methods map[string]*operation, allow string) http.Handler {
	return s.door.Handler(func(w http.ResponseWriter, r *http.Request) error {
		if op := methods[r.Method]; op != nil {
			return s.serve(w, r, op)
		}
		return server.OtherMethod(w, r, allow)
	})
}

// serve lets a request pass the guard and hands it to its operation.
func (s *api) serve(w http.ResponseWriter, r *http.Request, op *operation) error {
	req := &apiRequest{Request: r, op: op}
	if !op.public() {
		if err := server.Aside(func() error { return s.admit(w, req) }); err != nil {
			return err
		}
	}
	return op.handle(w, req)
}

// admit lets a request pass the guard.
func (s *api) admit(w http.ResponseWriter, r *apiRequest) (err error) {
	r.caller, err = s.door.Admit(w, r.Request, server.Terms{Scope: r.op.Scope, Class: r.op.Class, Names: r.names})
	return err
}

// names reports whether the path names a workspace, by its name or its id.
func (r *apiRequest) names(w workspace.Workspace) bool {
	ref, err := url.PathUnescape(mux.Vars(r.Request)["id"])
	if err != nil {
		return false
	}
	if id, ok := request.ID(ref); ok {
		return id == w.ID
	}
	return ref == w.Slug
}

// link completes what is told of a turn with where to read or end it.
func (s *api) link(r *apiRequest, t *session.ActiveTurn) {
	server.Link(s.door.Base(r.Request), r.caller.Workspace, t)
}
