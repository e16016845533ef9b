package app

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/parley-server/parley/internal/agui"
	"github.com/parley-server/parley/internal/dialect"
	"github.com/parley-server/parley/internal/door"
	"github.com/parley-server/parley/internal/openaiapi"
	"github.com/parley-server/parley/internal/uistream"
)

// common is what every way in needs.
func (s *service) common() door.Config {
	return door.Config{
		Sessions: s.sessions, Workspaces: s.workspaces, Keys: s.keys, Limits: s.limits, Log: s.Log, Version: ThisBuild().Version,
		BaseURL: s.Config.BaseURL, Keepalive: s.Config.SSEKeepAlive, WriteTimeout: s.Config.SSEWriteTimeout,
		Failures: s.failures, TrustedProxies: s.proxies, Local: s.DevDir != "",
	}
}

// buildDialects makes the doors for chat clients, by their paths.
func (s *service) buildDialects(common door.Config) (map[string]http.Handler, error) {
	cfg := dialect.Config{Config: common, Turns: s.turns, Skills: s.skills}
	own := make(map[string]http.Handler)
	for _, way := range []func(dialect.Config) (map[string]http.Handler, error){openaiapi.New, uistream.New, agui.New} {
		routes, err := way(cfg)
		if err != nil {
			return nil, fmt.Errorf("make a door for chat clients: %w", err)
		}
		maps.Copy(own, routes)
	}
	return own, nil
}

// ways leads requests to the ways in that have paths of their own, and all others to the rest.
// In a path {name} is one segment, and {name...} all that follow; a path that ends in / is also
// that of everything below it that has no handler, the longest first. It takes paths as they are:
// http.ServeMux would redirect some.
func ways(rest http.Handler, at map[string]http.Handler) http.Handler {
	var roots []string
	for pattern := range at {
		if strings.HasSuffix(pattern, "/") {
			roots = append(roots, pattern)
		}
	}
	slices.SortFunc(roots, func(a, b string) int { return len(b) - len(a) })
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		path := r.URL.EscapedPath()
		if h, ok := at[path]; ok {
			h.ServeHTTP(w, r)
			return
		}
		for pattern, h := range at {
			if leads(pattern, path, r) {
				h.ServeHTTP(w, r)
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

// leads reports whether a path fits a pattern, and puts the values of its names into the
// request.
func leads(pattern, path string, r *http.Request) bool {
	want, got := strings.Split(pattern, "/"), strings.Split(path, "/")
	if len(got) > len(want) && strings.HasSuffix(pattern, "...}") {
		n := len(want) - 1
		got = append(got[:n:n], strings.Join(got[n:], "/"))
	}
	if len(got) != len(want) {
		return false
	}
	values := make(map[string]string)
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
		values[strings.TrimSuffix(strings.TrimSuffix(name, "}"), "...")] = value
	}
	for name, value := range values {
		r.SetPathValue(name, value)
	}
	return true
}
