package app

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/parley-server/parley/internal/eventlog"
	"github.com/parley-server/parley/internal/model"
	"github.com/parley-server/parley/internal/model/builtin"
	"github.com/parley-server/parley/internal/pulse"
	"github.com/parley-server/parley/internal/server/a2a"
	"github.com/parley-server/parley/internal/server/rest"
	"github.com/parley-server/parley/internal/session"
	"github.com/parley-server/parley/internal/store/account"
	"github.com/parley-server/parley/internal/store/agent"
	"github.com/parley-server/parley/internal/store/apikey"
	"github.com/parley-server/parley/internal/store/callback"
	"github.com/parley-server/parley/internal/store/chain"
	"github.com/parley-server/parley/internal/store/filestore"
	"github.com/parley-server/parley/internal/store/modelset"
	"github.com/parley-server/parley/internal/store/permission"
	"github.com/parley-server/parley/internal/store/ratelimit"
	"github.com/parley-server/parley/internal/store/skill"
	"github.com/parley-server/parley/internal/store/toolset"
	"github.com/parley-server/parley/internal/store/wiki"
	"github.com/parley-server/parley/internal/store/workspace"
	"github.com/parley-server/parley/internal/turn"
)

// maxFetches is the number of files that this process fetches at once. A fetch holds a connection
// and one chunk in memory.
const maxFetches = 16

// buildParts creates every part without starting it. If it fails, the caller closes.
func (s *service) buildParts(ctx context.Context) (err error) {
	if s.Config.HTTP { // first, since links need the address
		if s.listener, err = s.listenPort(ctx); err != nil {
			return err
		}
		s.url = addressOf(s.listener)
	}
	if s.Config.MetricsListen != "" {
		if s.observer, err = s.listenMetrics(ctx); err != nil {
			return err
		}
	}
	if err := s.buildStores(ctx); err != nil {
		return err
	}
	if err := s.buildTurns(); err != nil {
		return err
	}
	if s.listener == nil {
		return nil
	}
	return s.buildServer()
}

// buildStores creates the owners of tables.
func (s *service) buildStores(ctx context.Context) (err error) {
	cfg := s.Config
	s.keys = apikey.New(s.pool, s.Log)
	s.accounts = account.New(s.pool, s.Log)
	s.pulse = pulse.New(s.pool)
	s.workspaces = workspace.New(s.pool)
	s.wiki = wiki.New(s.pool)
	s.skills, s.agents = skill.New(s.pool), agent.New(s.pool)
	s.agents.Accept = cfg.checkCost
	s.toolset, s.modelset = toolset.NewStore(s.pool), modelset.New(s.pool)
	err = s.retryStep(ctx, func(ctx context.Context) error {
		s.secrets, err = s.openVault(ctx)
		return err
	})
	if err != nil {
		return err
	}
	if err := s.startTickets(); err != nil {
		return err
	}
	guard, err := s.Config.newGuard()
	if err != nil {
		return &ConfigError{[]string{"PARLEY_EGRESS_ALLOW: " + sentenceOf(err)}}
	}
	s.files = filestore.New(s.pool, s.secrets.Keyring(), filestore.Options{
		Base: s.baseURL(), TTL: cfg.SignedURLTTL, Guard: guard, Fetchers: min(cfg.Workers, maxFetches), Log: s.Log, Pulse: s.pulse,
	})
	s.guard = guard
	s.callbacks = callback.NewStore(s.pool, s.secrets.Keyring(), guard)
	if err := s.buildRunner(ctx, guard); err != nil {
		return err
	}
	s.connector = newConnector(s.toolset, s.runner, s.secrets.Keyring(), s.baseURL(), s.Log)

	heads, err := cfg.headStores()
	if err != nil {
		return &ConfigError{[]string{"PARLEY_AUDIT_HEADS: " + sentenceOf(err)}}
	}
	s.chain = chain.New(s.pool, s.secrets.Keyring(), chain.Options{Log: s.Log, Pulse: s.pulse, Heads: heads})
	s.events = eventlog.New(s.pool, eventlog.Options{Log: s.Log, Pulse: s.pulse, Metrics: s.metrics, Dropped: s.chain.NoteDrop})
	kept := cfg.sessionOptions()
	kept.Log, kept.Erase = s.Log, []session.Eraser{s.files.Erase, s.callbacks.Erase, s.folders.Erase, s.runner.Erase, s.toolset.Erase,
		s.chain.Erase}
	kept.Late = s.chain.NoteLate
	s.sessions = session.New(s.pool, s.events, kept)
	if err := s.retryStep(ctx, s.events.Prepare); err != nil {
		return err
	}
	s.limits = ratelimit.New(s.pool, ratelimit.Options{Node: s.events.Node(), Log: s.Log, Pulse: s.pulse,
		Limits: ratelimit.Limits{Messages: cfg.MessagesPerMinute, Calls: cfg.CallsPerMinute, Streams: cfg.OpenStreams}})
	s.failures = ratelimit.NewFailures(cfg.FailedKeysPerMinute)
	if s.proxies, err = cfg.trustedProxies(); err != nil {
		return &ConfigError{[]string{"PARLEY_TRUSTED_PROXIES: " + sentenceOf(err)}}
	}
	return nil
}

// baseURL returns the public address of the service, or "": then the addresses in events and
// callbacks, which are stored before they are read, begin with the path.
func (s *service) baseURL() string {
	if s.Config.BaseURL == "" && s.DevDir != "" {
		return s.url
	}
	return s.Config.BaseURL
}

// buildTurns creates the parts that run turns.
func (s *service) buildTurns() (err error) {
	cfg := s.Config
	s.models = newModels(cfg, func() (model.Model, error) {
		return builtin.New(), nil
	}, s.workspaces, ownProviders{s.modelset, s.secrets, s.guard})
	name, because := cfg.DefaultModel()
	if _, err := s.models.ofServer(name); err != nil {
		return &ConfigError{[]string{sentenceOf(err)}}
	}
	s.banner.printModel(name, because)
	if err := s.useEmbeddings(); err != nil {
		return err
	}

	turns := turn.Config{
		Pool: s.pool, EventLog: s.events, Sessions: s.sessions, Model: s.models.Model, DefaultModel: name, Catalog: cfg.catalog,
		Tools: s.agentTools, OwnTools: s.ownTools, CheckNames: s.toolset.CheckNames, Toolset: s.toolset, Runner: s.runner,
		Skills: s.skills, Permissions: permission.New(s.pool), Vault: s.secrets, Files: s.files, Callbacks: s.callbacks,
		Base: s.baseURL(), Reports: a2a.Reports(s.baseURL()),
		// 0 would be the default
		Log: s.Log, Metrics: s.metrics, Tracer: s.tracer, Pulse: s.pulse, Workers: cfg.Workers, Queue: cfg.Queue,
		ModelCalls: cfg.ModelCalls, Lease: cfg.TurnLease, Window: cfg.ApprovalWindow, Grace: max(cfg.Drain, 1),
	}
	if s.Turns != nil {
		s.Turns(&turns)
	}
	if s.turns, err = turn.New(turns); err != nil {
		return fmt.Errorf("make the turn service: %w", err)
	}
	return nil
}

// buildServer creates the HTTP server.
func (s *service) buildServer() error {
	handler, err := s.buildHandler()
	if err != nil {
		return err
	}
	s.server = &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: rest.HeaderTime,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    rest.HeaderBytes,
		ErrorLog:          slog.NewLogLogger(s.Log.Handler(), slog.LevelWarn),
	}
	return nil
}

// closeParts releases the resources of buildParts if runParts is not reached.
func (s *service) closeParts() {
	if s.listener != nil {
		s.listener.Close()
	}
	if s.observer != nil {
		s.observer.Close()
	}
	if s.box != nil {
		s.box.Close()
	}
}
