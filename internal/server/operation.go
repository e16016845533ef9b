package server

import (
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/server/request"
	"github.com/parley-server/parley/internal/store/apikey"
	"github.com/parley-server/parley/internal/store/ratelimit"
	"github.com/parley-server/parley/internal/store/workspace"
)

// Operation is one method of a path.
type Operation struct {
	Public bool // needs no key; Scope and Class do not apply
	Scope  apikey.Scope
	Class  ratelimit.Class
	// Tokens accepts browser tokens. Serve checks their limit.
	Tokens bool
	// CheckOrigin rejects requests of foreign web pages before anything else is checked.
	CheckOrigin bool
	// Serve writes only on success.
	Serve func(http.ResponseWriter, *Request) error
}

// Request is an authorized request.
type Request struct {
	*http.Request
	Caller Caller // zero for public operations
	// Names maps the fields of a message to the protocol's own names, for errors.
	Names request.Names
}

// HandleMethods serves the methods of a path. If the path has the value "id", it names a workspace.
func (s *Server) HandleMethods(methods map[string]Operation) http.Handler {
	methods = maps.Clone(methods)
	if get, ok := methods[http.MethodGet]; ok {
		methods[http.MethodHead] = get
	}
	names := append(slices.Collect(maps.Keys(methods)), http.MethodOptions)
	slices.Sort(names)
	allow := strings.Join(names, ", ")
	return s.Handler(func(w http.ResponseWriter, r *http.Request) error {
		if s.shareWithOrigin(w.Header(), r, allow) {
			w.WriteHeader(http.StatusNoContent)
			return nil
		}
		if op, ok := methods[r.Method]; ok {
			return s.serveOperation(w, r, op)
		}
		return rejectMethod(w, r, allow)
	})
}

// rejectMethod responds to a method that a path does not have. allow lists those that it has.
func rejectMethod(w http.ResponseWriter, r *http.Request, allow string) error {
	w.Header().Set("Allow", allow)
	if r.Method == http.MethodOptions {
		w.WriteHeader(http.StatusNoContent)
		return nil
	}
	return fault.New(fault.MethodNotAllowed, "This path allows %s.", allow)
}

// serveOperation authorizes a request and serves it.
func (s *Server) serveOperation(w http.ResponseWriter, r *http.Request, op Operation) error {
	req := &Request{Request: r, Names: make(request.Names)}
	if op.CheckOrigin {
		if err := s.CheckOrigin(r); err != nil {
			return err
		}
	}
	if !op.Public {
		if err := Aside(func() error { return s.authorize(w, req, op) }); err != nil {
			return err
		}
	}
	if req.Caller.Session != "" {
		ctx, stop := s.Accounts.While(req.Context(), req.Caller.Session)
		defer stop()
		req.Request = req.WithContext(ctx)
	}
	err := op.Serve(w, req)
	nameRequiredScopes(w, req.Caller, err)
	return req.Names.TranslateError(err)
}

func (s *Server) authorize(w http.ResponseWriter, r *Request, op Operation) (err error) {
	terms := Requirement{Scope: op.Scope, Class: op.Class, Tokens: op.Tokens}
	if ref := r.PathValue("id"); ref != "" {
		terms.Workspace = ref
		terms.Names = func(own workspace.Workspace) bool {
			if id, ok := request.ID(ref); ok {
				return id == own.ID
			}
			return ref == own.Slug
		}
	}
	r.Caller, err = s.Authorize(w, r.Request, terms)
	return err
}
