package turn

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivertype"
	"golang.org/x/sync/errgroup"

	"github.com/parley-server/parley/db"
	"github.com/parley-server/parley/internal/eventlog"
	"github.com/parley-server/parley/internal/fair"
	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/metrics"
	"github.com/parley-server/parley/internal/model"
	"github.com/parley-server/parley/internal/outage"
	"github.com/parley-server/parley/internal/pgerr"
	"github.com/parley-server/parley/internal/pulse"
	"github.com/parley-server/parley/internal/replan"
	"github.com/parley-server/parley/internal/session"
	"github.com/parley-server/parley/internal/store/agent"
	"github.com/parley-server/parley/internal/store/budget"
	"github.com/parley-server/parley/internal/store/callback"
	"github.com/parley-server/parley/internal/store/filestore"
	"github.com/parley-server/parley/internal/store/permission"
	"github.com/parley-server/parley/internal/store/skill"
	"github.com/parley-server/parley/internal/store/toolset"
	"github.com/parley-server/parley/internal/store/vault"
	"github.com/parley-server/parley/internal/tool"
	"github.com/parley-server/parley/internal/toolenv"
	"github.com/parley-server/parley/internal/tracing"
)

// ReportEncoder encodes a turn, as it was at a time, as the body of a callback.
type ReportEncoder func(turn session.View, files filestore.Files, at time.Time) ([]byte, error)

// Config configures a Service. Stores, Model and Pool are required; durations and counts have
// defaults.
type Config struct {
	Pool     *pgxpool.Pool
	EventLog *eventlog.Log
	Sessions *session.Store
	// Model resolves a model of a workspace by its full name.
	Model func(ctx context.Context, workspace uuid.UUID, name string) (model.Model, error)
	// DefaultModel is the full name of the model of agents that name none.
	DefaultModel string
	// Catalog has the prices and limits of models; nil: the catalog of this release.
	Catalog *model.Catalog
	// Tools returns the tools of a run, which is nil without a Runner.
	Tools  func(*toolenv.Run) []tool.Tool
	Runner *toolenv.Runner // nil: tools cannot run
	// OwnTools returns the tools that a workspace has added, in a run; nil: there are none.
	OwnTools func(ctx context.Context, workspace uuid.UUID, run *toolenv.Run) ([]tool.Tool, error)
	// CheckNames reports tools of a message whose names the tools of the workspace have, or that are
	// too many beside these; nil: there are none.
	CheckNames func(ctx context.Context, workspace uuid.UUID, names []string) ([]fault.Violation, error)

	// Toolset makes links for servers with OAuth; nil: OwnTools has none of them.
	Toolset *toolset.Store

	Skills      *skill.Store
	Permissions *permission.Store // nil: every tool call may run
	Vault       *vault.Store
	Files       *filestore.Store
	Callbacks   *callback.Store
	Log         *slog.Logger
	Metrics     *metrics.Metrics // nil: nothing is counted outside
	Tracer      *tracing.Tracer  // nil: turns are not traced
	Pulse       *pulse.Pulse     // shared by the parts of a process; nil: the service creates its own
	// Base is the public address of the service, the prefix of the addresses in events; "": the
	// addresses begin at the path.
	Base string
	// Reports encode the bodies of callbacks in protocols other than Parley's own.
	Reports map[callback.Protocol]ReportEncoder

	Queue        int           // messages that may wait for admission; default DefaultQueue
	StartTimeout time.Duration // time limit for storing an admitted message; default 3 s
	// ConfirmTimeout is how long Start searches for a turn after a commit with an unknown outcome;
	// default 2 s.
	ConfirmTimeout time.Duration

	Window  time.Duration // how long a turn waits for an approval or a secret; default 10 min
	Workers int           // turns that run at once in this process; workspaces share the places; 0: none, other processes run them
	// ModelCalls is how many replies this process generates at once; workspaces share the places.
	// Default: Workers.
	ModelCalls int
	Lease      time.Duration // how long a silent worker keeps its turn; default 10 s
	Grace      time.Duration // how long a stopping process waits for the steps of its turns; default 10 s

	// FetchCooldown is the minimum time between two fetches of jobs, far less than River's own 100
	// ms: a user waits for the turn to start. FetchPoll is how long a fetch waits after a lost
	// notification. Default 1 ms and 1 s, River's own; the bench compares both.
	FetchCooldown, FetchPoll time.Duration
}

// Service runs turns.
type Service struct {
	cfg     Config
	log     *slog.Logger
	q       *db.Queries
	agents  *agent.Store
	budgets *budget.Store
	river   *river.Client[pgx.Tx]
	clock   clock

	admission *admission

	busy atomic.Int64 // workers with a job

	places     *fair.Places  // one for each running turn
	modelCalls *fair.Places  // one for each reply in progress
	unplaced   atomic.Bool   // turns may wait without a job until a place is free
	freed      chan struct{} // holds a value when a place may be free
	hurried    chan struct{} // closed by HandOverNow
	fetched    atomic.Int64  // when jobs were last fetched, in Unix nanoseconds
	reaped     atomic.Int64  // when a step of the reaper last succeeded, in Unix nanoseconds

	steps sync.Map // maps a step of the reaper to its *outage.Log

	mu      sync.Mutex
	running map[uuid.UUID]*attempt
}

// New returns a service. Start and Cancel work at once; turns run only while Run does.
func New(cfg Config) (*Service, error) {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Lease == 0 {
		cfg.Lease = 10 * time.Second
	}
	if cfg.Grace == 0 {
		cfg.Grace = 10 * time.Second
	}
	if cfg.ModelCalls == 0 {
		cfg.ModelCalls = max(cfg.Workers, 1)
	}
	if cfg.Window == 0 {
		cfg.Window = 10 * time.Minute
	}
	if cfg.ConfirmTimeout == 0 {
		cfg.ConfirmTimeout = 2 * time.Second
	}
	if cfg.StartTimeout == 0 {
		cfg.StartTimeout = defaultStartTimeout
	}
	if cfg.FetchCooldown == 0 {
		cfg.FetchCooldown = time.Millisecond
	}
	if cfg.FetchPoll == 0 {
		cfg.FetchPoll = time.Second
	}
	if cfg.Metrics == nil {
		cfg.Metrics = metrics.New()
	}
	if cfg.Pulse == nil {
		cfg.Pulse = pulse.New(cfg.Pool)
	}
	cfg.Base = strings.TrimSuffix(cfg.Base, "/")
	s := &Service{cfg: cfg, log: cfg.Log, q: db.New(replan.Pool{Pool: cfg.Pool}), agents: agent.New(cfg.Pool),
		budgets: budget.New(cfg.Pool), running: make(map[uuid.UUID]*attempt)}
	s.places, s.modelCalls = fair.New(cfg.Workers), fair.New(cfg.ModelCalls)
	s.fetched.Store(time.Now().UnixNano())
	s.reaped.Store(time.Now().UnixNano())

	s.freed, s.hurried = make(chan struct{}, 1), make(chan struct{})
	s.clock = clock{cfg.Pulse}
	s.admission = newAdmission(cfg.Pool.Config().MaxConns, cfg.Queue)
	failures := outage.New(cfg.Log, "River")
	rc := &river.Config{
		ID:         strconv.Itoa(int(cfg.EventLog.Node())),
		Logger:     slog.New(riverLog{cfg.Log.Handler(), failures}),
		Middleware: redactErrors(cfg.Log),
		Hooks:      []rivertype.Hook{atOnce{}},
		Test:       river.TestConfig{Time: s.clock}, // the only option of River for a clock
		// River's own timeouts are longer than ours: a turn ends by its own limits.
		JobTimeout:                  maxTurnTime + time.Minute,
		RescueStuckJobsAfter:        maxTurnTime + 2*time.Minute,
		CompletedJobRetentionPeriod: time.Hour,
		FetchCooldown:               cfg.FetchCooldown,
		FetchPollInterval:           cfg.FetchPoll,
	}
	if cfg.Workers > 0 {
		rc.Workers = river.NewWorkers()
		river.AddWorker(rc.Workers, &worker{s: s})
		river.AddWorker(rc.Workers, &expiryWorker{s: s})
		river.AddWorker(rc.Workers, &callbackWorker{s: s})
		river.AddWorker(rc.Workers, &responseWorker{s: s})
		rc.Queues = map[string]river.QueueConfig{
			queue:              {MaxWorkers: jobsAtOnce(cfg.Workers)},
			callbackQueue:      {MaxWorkers: callbackWorkers, FetchPollInterval: 2 * time.Second},
			river.QueueDefault: {MaxWorkers: expiryWorkers, FetchPollInterval: 5 * time.Second}, // see expireOverdue, cancelOpenResponse
		}
	}
	client, err := river.NewClient(driver{riverpgxv5.New(cfg.Pool), &s.fetched, failures}, rc)
	if err != nil {
		return nil, fmt.Errorf("set up River: %w", err)
	}
	s.river = client
	cfg.Sessions.OnFinish(s.reportFinish)
	return s, nil
}

// Window is how long a turn waits for an approval or a secret.
func (s *Service) Window() time.Duration { return s.cfg.Window }

// maxTurnTime is the upper limit of a turn's running time.
const maxTurnTime = time.Hour

// Run works on turns, renews leases and searches for dead workers until ctx ends. Then it hands its
// running turns over: a running step may finish within the grace period.
func (s *Service) Run(ctx context.Context) error {
	ctx, end := context.WithCancel(ctx)
	defer end()
	beating, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	var g errgroup.Group
	g.Go(func() error { return s.renewLeases(beating) })
	g.Go(func() error { return s.runPlacing(ctx) })
	g.Go(func() error { return s.runReaper(ctx) })
	g.Go(func() error { return s.runHousekeeping(ctx) })
	err := s.startRiver(ctx)
	if err == nil {
		<-ctx.Done()
	}
	end()
	err = errors.Join(err, s.handOver())
	stop()
	return errors.Join(err, g.Wait())
}

// startRiver starts River, if this process runs turns. It retries while the link to the database is
// bad.
func (s *Service) startRiver(ctx context.Context) error {
	if s.cfg.Workers == 0 {
		return nil
	}
	starts := outage.New(s.log, "start River")
	for {
		err := s.river.Start(context.WithoutCancel(ctx))
		starts.Note(ctx, err)
		switch {
		case err == nil || ctx.Err() != nil:
			return nil
		case !pgerr.IsTransient(err):
			return fmt.Errorf("start River: %w", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(startPause):
		}
	}
}

// startPause is the pause between two tries to start River.
const startPause = 250 * time.Millisecond

// insertJob inserts the job that will run a turn, in the transaction that queued it.
func (s *Service) insertJob(ctx context.Context, tx *session.Tx, turn uuid.UUID) error {
	job, err := jobOf(turn, tx.SessionID())
	if err != nil {
		return err
	}
	s.wakeAfter(tx, queue)
	return tx.EnqueueJob(ctx, turn, job)
}
