package chat

import (
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/parley-server/parley/internal/server"
	"github.com/parley-server/parley/internal/server/request"
	"github.com/parley-server/parley/internal/store/apikey"
	"github.com/parley-server/parley/internal/store/ratelimit"
	"github.com/parley-server/parley/internal/store/workspace"
)

// Operation is what one method of a path does. Do writes only on success.
type Operation struct {
	Scope apikey.Scope
	Class ratelimit.Class
	Do    func(http.ResponseWriter, *Request) error
}

// Request is a request that has passed the guard.
type Request struct {
	*http.Request
	Caller server.Caller
	// Names are what the protocol calls the fields of a message, where it has names of its own:
	// in an error they stand instead of ours.
	Names request.Names
}

// Route answers all methods of a path. Where the path has the value "id", it names a
// workspace.
func (d *Desk) Route(methods map[string]Operation) http.Handler {
	methods = maps.Clone(methods)
	if get, ok := methods[http.MethodGet]; ok {
		methods[http.MethodHead] = get
	}
	names := append(slices.Collect(maps.Keys(methods)), http.MethodOptions)
	slices.Sort(names)
	allow := strings.Join(names, ", ")
	return d.Door.Handler(func(w http.ResponseWriter, r *http.Request) error {
		if op, ok := methods[r.Method]; ok {
			return d.serve(w, r, op)
		}
		return server.OtherMethod(w, r, allow)
	})
}

// serve lets a request pass the guard and hands it to its operation.
func (d *Desk) serve(w http.ResponseWriter, r *http.Request, op Operation) error {
	terms := server.Terms{Scope: op.Scope, Class: op.Class}
	if ref := r.PathValue("id"); ref != "" {
		terms.Names = func(own workspace.Workspace) bool {
			if id, ok := request.ID(ref); ok {
				return id == own.ID
			}
			return ref == own.Slug
		}
	}
	caller, err := d.Door.Admit(w, r, terms)
	if err != nil {
		return err
	}
	req := &Request{Request: r, Caller: caller, Names: make(request.Names)}
	err = op.Do(w, req)
	server.NameScopes(w, caller, err)
	return req.Names.Told(err)
}
