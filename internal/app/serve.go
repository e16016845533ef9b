package app

import (
	"context"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-server/parley/internal/app/demo"
	"github.com/parley-server/parley/internal/devdb"
	"github.com/parley-server/parley/internal/egress"
	"github.com/parley-server/parley/internal/eventlog"
	"github.com/parley-server/parley/internal/metrics"
	"github.com/parley-server/parley/internal/outage"
	"github.com/parley-server/parley/internal/pgerr"
	"github.com/parley-server/parley/internal/pulse"
	"github.com/parley-server/parley/internal/session"
	"github.com/parley-server/parley/internal/store/account"
	"github.com/parley-server/parley/internal/store/agent"
	"github.com/parley-server/parley/internal/store/apikey"
	"github.com/parley-server/parley/internal/store/callback"
	"github.com/parley-server/parley/internal/store/chain"
	"github.com/parley-server/parley/internal/store/filestore"
	"github.com/parley-server/parley/internal/store/modelset"
	"github.com/parley-server/parley/internal/store/ratelimit"
	"github.com/parley-server/parley/internal/store/skill"
	"github.com/parley-server/parley/internal/store/toolset"
	"github.com/parley-server/parley/internal/store/vault"
	"github.com/parley-server/parley/internal/store/wiki"
	"github.com/parley-server/parley/internal/store/workspace"
	"github.com/parley-server/parley/internal/tool/mcpauth"
	"github.com/parley-server/parley/internal/toolenv"
	"github.com/parley-server/parley/internal/toolenv/remote"
	"github.com/parley-server/parley/internal/toolenv/sandbox"
	"github.com/parley-server/parley/internal/toolenv/workdir"
	"github.com/parley-server/parley/internal/tracing"
	"github.com/parley-server/parley/internal/turn"
	"github.com/parley-server/parley/migrations"
)

// Options configure Serve. Config is the result of Load.
type Options struct {
	Config Config
	// DevDir enables development mode: a private PostgreSQL and a demo workspace in this directory,
	// accessible only from this machine.
	DevDir string

	Out   io.Writer        // receives the progress of the start in development mode; nil discards it
	Log   *slog.Logger     // nil discards
	Ready func(url string) // called when requests are served; may be nil
	// Hurry ends the drain after the end of Serve's context: running turns are handed over at once;
	// nil: the drain takes its time.
	Hurry <-chan struct{}
	// Turns changes options that have no setting, before the turns run. For the bench; may be nil.
	Turns func(*turn.Config)
}

// service is the service of one process.
type service struct {
	Options
	banner  banner
	pool    *pgxpool.Pool
	private *devdb.Server // nil: the database of DATABASE_URL

	pulse      *pulse.Pulse
	events     *eventlog.Log
	sessions   *session.Store
	keys       *apikey.Store
	accounts   *account.Store
	limits     *ratelimit.Store
	failures   *ratelimit.Failures
	proxies    []netip.Prefix
	workspaces *workspace.Store
	wiki       *wiki.Store
	skills     *skill.Store
	agents     *agent.Store
	toolset    *toolset.Store
	modelset   *modelset.Store
	models     *models
	guard      *egress.Guard
	tickets    *demo.Tickets // of development mode
	connector  *mcpauth.Service
	secrets    *vault.Store
	files      *filestore.Store
	callbacks  *callback.Store
	chain      *chain.Store
	folders    *workdir.Store
	box        *sandbox.Sandbox // nil: no commands, or on the runner
	remote     *remote.Client   // nil: no runner
	runner     *toolenv.Runner
	turns      *turn.Service
	stopping   atomic.Bool // another process must serve new requests

	metrics  *metrics.Metrics
	tracer   *tracing.Tracer // nil: no traces are exported
	observer net.Listener    // nil: no metrics are served
	listener net.Listener    // nil: this process serves no requests
	server   *http.Server
	url      string
	named    bool // in development mode: dev.env names this server
}

// Serve runs the service until ctx ends, then stops it in order: running turns are handed over,
// streams end without done so that their readers reconnect, and the log closes last.
func Serve(ctx context.Context, opt Options) error {
	if opt.Log == nil {
		opt.Log = slog.New(slog.DiscardHandler)
	}
	if opt.Out == nil {
		opt.Out = io.Discard
	}
	if lacking := opt.missingSettings(); len(lacking) > 0 {
		return &ConfigError{lacking}
	}
	log.SetOutput(io.Discard) // net/http logs arbitrary data from servers there
	s := &service{Options: opt, metrics: metrics.New()}
	s.startTracing(ctx)
	defer s.stopTracing(ctx)
	s.banner.printHeader(opt)
	if opt.DevDir != "" && opt.Config.HTTP {
		release, err := s.claimDirectory()
		if err != nil {
			return err
		}
		defer release()
	}

	dsn, release, err := s.openDatabase(ctx)
	if err != nil {
		return err
	}
	defer release()
	if s.pool, err = openPool(ctx, dsn, "parley", s.Config.Connections, eventlog.CheckLineage(s.Log),
		eventlog.CheckStandbys(s.Log)); err != nil {
		return err
	}
	defer closePool(s.pool, time.Second)
	if err := s.retryStep(ctx, func(ctx context.Context) error { return s.prepareDatabase(ctx, dsn) }); err != nil {
		return err
	}
	defer func() { _ = s.tickets.Close() }()
	if err := s.buildParts(ctx); err != nil {
		s.closeParts()
		return err
	}
	if opt.DevDir != "" {
		if err := s.createDemo(ctx, dsn); err != nil {
			s.closeParts()
			return err
		}
	}
	if err := s.retryStep(ctx, s.firstAdmin); err != nil {
		s.closeParts()
		return err
	}
	return s.runParts(ctx)
}

// missingSettings lists the settings that are missing for a start.
func (opt Options) missingSettings() []string {
	var list []string
	if !opt.Config.HTTP && opt.Config.Workers == 0 {
		list = append(list, "PARLEY_HTTP=false and PARLEY_WORKERS=0 leave this process nothing to do.")
	}
	if opt.Config.DatabaseURL == "" && opt.DevDir == "" {
		list = append(list, "DATABASE_URL is not set. For a database of your own to try things out: parley serve --dev.")
	}
	if opt.Config.VaultKey == "" && opt.DevDir == "" {
		list = append(list, noKey)
	}
	if opt.Config.Runner != "" && opt.Config.Sandbox == "off" {
		list = append(list, "PARLEY_RUNNER is set, but PARLEY_SANDBOX is off, as the image without tools sets it. Set PARLEY_SANDBOX to "+
			"auto or require.")
	}
	return list
}

// prepareDatabase checks the database and migrates it to this release's schema.
func (s *service) prepareDatabase(ctx context.Context, dsn Secret) error {
	began := time.Now()
	waits := outage.New(s.Log, "wait for the database")
	version, err := awaitDatabase(ctx, s.pool, 0, func(err error) {
		waits.Note(ctx, err)
		s.banner.printProgress(err.Error() + " Trying again.")
	})
	if err != nil {
		return err
	}
	waits.Note(ctx, nil)
	if err := checkEncoding(ctx, s.pool); err != nil {
		return err
	}
	if s.Config.HTTP && s.Config.BaseURL == "" && s.DevDir == "" {
		s.Log.WarnContext(ctx, "addresses in events and callbacks have no host: PARLEY_BASE_URL is not set")
	}
	if s.Config.Durability == "off" {
		s.Log.WarnContext(ctx, "accepted messages can be lost: PARLEY_DURABILITY is off")
	} else if err := checkDurable(ctx, s.pool); err != nil {
		return err
	}
	if err := checkListen(ctx, s.pool); err != nil {
		return err
	}
	s.banner.printDatabase(version, time.Since(began))
	return s.migrateDatabase(ctx, dsn)
}

// migrateDatabase migrates the database to this release's schema, or fails if migrations are not
// this process's task.
func (s *service) migrateDatabase(ctx context.Context, dsn Secret) error {
	began := time.Now()
	if s.Config.Migrate == "check" {
		steps, err := migrations.Status(ctx, dsn.Reveal())
		if err != nil {
			return err
		}
		if n := len(migrations.Pending(steps)); n > 0 {
			return &StartError{Why: fmt.Sprintf("The database lacks %d migrations of this release.", n),
				Do: "Run parley migrate up, or set PARLEY_MIGRATE=auto."}
		}
		return nil
	}
	opts := migrations.Options{Log: s.Log}
	if s.DevDir != "" {
		opts.Log = nil // the banner reports it
	}
	done, err := migrations.Up(ctx, dsn.Reveal(), opts)
	if err != nil {
		return err
	}
	if done != (migrations.Result{}) {
		s.pool.Reset() // its connections have plans for the old schema, and cannot read the lineage
	}
	s.banner.printStep("migrations", done.String(), time.Since(began))
	return nil
}

// retryStep retries a step of the start while it fails because of the link to the database or a
// temporary limit. An error that needs an administrator ends the start.
func (s *service) retryStep(ctx context.Context, step func(context.Context) error) error {
	waits := outage.New(s.Log, "wait for the database: a step of the start")
	for delay := 250 * time.Millisecond; ; delay = min(2*delay, waitingEvery) {
		err := step(ctx)
		if err == nil || ctx.Err() != nil || !pgerr.IsTransient(err) {
			if err == nil {
				waits.Note(ctx, nil)
			}
			return err
		}
		waits.Note(ctx, err)
		wait := time.NewTimer(delay)
		select {
		case <-ctx.Done():
			wait.Stop()
			return context.Cause(ctx)
		case <-wait.C:
		}
	}
}
