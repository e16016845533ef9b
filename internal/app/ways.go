package app

import (
	"fmt"
	"maps"
	"net/http"

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
