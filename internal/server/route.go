package server

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// Route leads requests to the handlers that have paths of their own, and all others to the rest.
// In a path {name} is one segment, and {name...} all that follow; a path that ends in / is also
// that of everything below it that has no handler, the longest first. It takes paths as they are:
// http.ServeMux would redirect some.
func Route(rest http.Handler, at map[string]http.Handler) http.Handler {
	var roots []string
	var patterns [][]string // split at their slashes; the others are literal
	for pattern := range at {
		if strings.HasSuffix(pattern, "/") {
			roots = append(roots, pattern)
		}
		if strings.Contains(pattern, "{") {
			patterns = append(patterns, strings.Split(pattern, "/"))
		}
	}
	slices.SortFunc(roots, func(a, b string) int { return len(b) - len(a) })
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		path := r.URL.EscapedPath()
		if h, ok := at[path]; ok {
			h.ServeHTTP(w, r)
			return
		}
		segments := strings.Split(path, "/")
		for _, pattern := range patterns {
			if matchPath(pattern, segments, r) {
				at[strings.Join(pattern, "/")].ServeHTTP(w, r)
				return
			}
		}
		for _, root := range roots {
			if strings.HasPrefix(path, root) {
				at[root].ServeHTTP(w, r)
				return
			}
		}
		rest.ServeHTTP(w, r)
	})
}

// matchPath reports whether a path fits a pattern, and puts the values of its names into the
// request.
func matchPath(want, got []string, r *http.Request) bool {
	n := len(want) - 1
	if len(got) > len(want) && strings.HasSuffix(want[n], "...}") {
		got = append(got[:n:n], strings.Join(got[n:], "/"))
	}
	if len(got) != len(want) {
		return false
	}
	var values map[string]string
	for i, segment := range want {
		name, named := strings.CutPrefix(segment, "{")
		if !named {
			if segment != got[i] {
				return false
			}
			continue
		}
		value, err := url.PathUnescape(got[i])
		if err != nil || value == "" {
			return false
		}
		if values == nil {
			values = make(map[string]string)
		}
		values[strings.TrimSuffix(strings.TrimSuffix(name, "}"), "...")] = value
	}
	for name, value := range values {
		r.SetPathValue(name, value)
	}
	return true
}
