package server

import (
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/origin"
	"github.com/parley-server/parley/internal/server/request"
	"github.com/parley-server/parley/internal/store/apikey"
	"github.com/parley-server/parley/internal/store/ratelimit"
	"github.com/parley-server/parley/internal/store/workspace"
	"github.com/parley-server/parley/internal/tracing"
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
	if !op.Public {
		req.Request = req.WithContext(origin.With(req.Context(), s.originOf(w, req)))
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

// originOf describes a request for audits.
func (s *Server) originOf(w http.ResponseWriter, r *Request) origin.Origin {
	o := origin.Origin{Key: r.Caller.Key, Protocol: protocolOf(r.URL.Path), RequestID: w.Header().Get("X-Request-Id")}
	if s.Tracer != nil {
		o.Traceparent = tracing.Traceparent(r.Context())
	}
	if r.Caller.Command == "" { // else the request has not left this process
		o.Address = s.ClientAddress(r.Request).String()
	}
	return o
}

// protocolOf names the protocol of a path.
func protocolOf(path string) string {
	switch {
	case strings.HasPrefix(path, "/mcp"):
		return "mcp"
	case strings.HasPrefix(path, "/a2a"):
		return "a2a"
	case strings.HasPrefix(path, "/openai"), strings.HasPrefix(path, "/v1"):
		return "openai"
	case strings.Contains(path, "/ui/chat"):
		return "aisdk"
	case strings.HasSuffix(path, "/ag-ui"):
		return "agui"
	}
	return "rest"
}
