package server

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/gorilla/mux"

	"github.com/parley-server/parley/internal/fault"
)

// Routes are the handlers of a protocol by their paths. In a path, {name} matches one segment and
// {name...} the rest of the path; their values are the request's path values. A path that ends in /
// also matches everything below it that has no handler.
type Routes map[string]http.Handler

// NewRouter returns the handler of all protocols. It compares paths as they were sent, without
// redirects and without decoding. It panics if two protocols have the same path.
func (s *Server) NewRouter(protocols ...Routes) http.Handler {
	all := make(Routes)
	for _, routes := range protocols {
		for path, handler := range routes {
			if all[path] != nil {
				panic(fmt.Sprintf("server: two protocols have the path %s", path))
			}
			all[path] = handler
		}
	}
	router := mux.NewRouter().SkipClean(true).UseEncodedPath()
	for _, path := range matchOrder(all) {
		route := router.NewRoute().Name(path).Handler(withPathValues(all[path]))
		if strings.HasSuffix(path, "/") {
			route.PathPrefix(path)
		} else {
			route.Path(pathTemplate(path))
		}
	}
	router.NotFoundHandler = s.Handler(func(http.ResponseWriter, *http.Request) error {
		return fault.New(fault.RouteNotFound, "The path does not exist. GET /api/v1/openapi lists all paths.")
	})
	router.MethodNotAllowedHandler = router.NotFoundHandler // unreachable: no route matches methods
	return router
}

// matchOrder returns the paths in the order in which they are compared: a name before a {variable}
// in its place, a {variable}:suffix before the {variable} alone, and prefixes last, the longest first.
func matchOrder(all Routes) []string {
	var whole, prefixes []string
	for path := range all {
		if strings.HasSuffix(path, "/") {
			prefixes = append(prefixes, path)
		} else {
			whole = append(whole, path)
		}
	}
	slices.SortFunc(whole, func(a, b string) int { return strings.Compare(a+"~", b+"~") })
	slices.SortFunc(prefixes, func(a, b string) int { return len(b) - len(a) })
	return append(whole, prefixes...)
}

// pathTemplate converts {name...} to the syntax of mux.
func pathTemplate(path string) string { return strings.ReplaceAll(path, "...}", ":.+}") }

// withPathValues stores the values of a path's names, decoded, in the request.
func withPathValues(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for name, value := range mux.Vars(r) {
			if decoded, err := url.PathUnescape(value); err == nil {
				r.SetPathValue(name, decoded)
			}
		}
		next.ServeHTTP(w, r)
	})
}
