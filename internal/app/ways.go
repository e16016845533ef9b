package app

import (
	"fmt"
	"maps"
	"net/http"

	"github.com/parley-server/parley/internal/server"
	"github.com/parley-server/parley/internal/server/agui"
	"github.com/parley-server/parley/internal/server/aisdk"
	"github.com/parley-server/parley/internal/server/chat"
	"github.com/parley-server/parley/internal/server/openai"
)

// common is what every way in needs.
func (s *service) common() server.Config {
	return server.Config{
		Sessions: s.sessions, Workspaces: s.workspaces, Keys: s.keys, Limits: s.limits, Log: s.Log, Version: ThisBuild().Version,
		BaseURL: s.Config.BaseURL, Keepalive: s.Config.SSEKeepAlive, WriteTimeout: s.Config.SSEWriteTimeout,
		Failures: s.failures, TrustedProxies: s.proxies, Local: s.DevDir != "",
	}
}

// buildDialects makes the doors for chat clients, by their paths.
func (s *service) buildDialects(common server.Config) (map[string]http.Handler, error) {
	cfg := chat.Config{Config: common, Turns: s.turns, Skills: s.skills}
	own := make(map[string]http.Handler)
	for _, way := range []func(chat.Config) (map[string]http.Handler, error){openai.New, aisdk.New, agui.New} {
		routes, err := way(cfg)
		if err != nil {
			return nil, fmt.Errorf("make a door for chat clients: %w", err)
		}
		maps.Copy(own, routes)
	}
	return own, nil
}
