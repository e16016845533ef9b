package turn

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"strconv"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"golang.org/x/sync/errgroup"

	"github.com/parley-server/parley/db"
	"github.com/parley-server/parley/internal/callback"
	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/model"
	"github.com/parley-server/parley/internal/session"
	"github.com/parley-server/parley/internal/tool"
	"github.com/parley-server/parley/internal/workspace"
)

// Config is what a Service needs. Durations and counts have defaults.
type Config struct {
	Pool       *pgxpool.Pool
	Sessions   *session.Store
	Workspaces *workspace.Store
	// Model resolves a workspace's model by name; "" is the service's own.
	Model func(name string) (model.Model, error)
	Tools []tool.Tool
	// Callbacks delivers reports; CallbackData makes what they say of a turn.
	Callbacks    *callback.Store
	CallbackData func(context.Context, callback.Delivery) ([]byte, error)
	Log          *slog.Logger

	Workers int           // turns that run at once in this process; 0: none, others run them
	Lease   time.Duration // how long a silent worker keeps its turn; default 10 s
	Grace   time.Duration // how long a stopping process waits for tools; default 10 s

	// River's pace, far quicker than its own defaults of 100 ms and 1 s: a person waits
	// for the turn to start. Default 1 ms and 100 ms; the bench compares the two.
	FetchCooldown, FetchPoll time.Duration
}

// Service runs turns.
type Service struct {
	cfg   Config
	log   *slog.Logger
	q     *db.Queries
	river *river.Client[pgx.Tx]

	mu      sync.Mutex
	running map[uuid.UUID]*attempt
}

// New makes a service. Start and Cancel work at once; turns run while Run does.
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
	if cfg.FetchCooldown == 0 {
		cfg.FetchCooldown = time.Millisecond
	}
	if cfg.FetchPoll == 0 {
		cfg.FetchPoll = 100 * time.Millisecond
	}
	s := &Service{cfg: cfg, log: cfg.Log, q: db.New(cfg.Pool), running: make(map[uuid.UUID]*attempt)}

	rc := &river.Config{
		ID:         strconv.Itoa(int(cfg.Sessions.Node())),
		Logger:     slog.New(quiet{cfg.Log.Handler()}),
		Middleware: redacting(cfg.Log),
		// River's own time-outs come after ours: a turn ends by its own limits.
		JobTimeout:                  maxTurnTime + time.Minute,
		RescueStuckJobsAfter:        maxTurnTime + 2*time.Minute,
		CompletedJobRetentionPeriod: time.Hour,
		FetchCooldown:               cfg.FetchCooldown,
		FetchPollInterval:           cfg.FetchPoll,
	}
	if cfg.Workers > 0 {
		rc.Workers = river.NewWorkers()
		river.AddWorker(rc.Workers, &worker{s: s})
		river.AddWorker(rc.Workers, &callbackWorker{s: s})
		rc.Queues = map[string]river.QueueConfig{
			queue:         {MaxWorkers: cfg.Workers},
			callbackQueue: {MaxWorkers: callbackWorkers, FetchPollInterval: time.Second},
		}
	}
	client, err := river.NewClient(riverpgxv5.New(cfg.Pool), rc)
	if err != nil {
		return nil, fmt.Errorf("set up River: %w", err)
	}
	s.river = client
	return s, nil
}

// maxTurnTime is the ceiling of a turn's running time.
const maxTurnTime = time.Hour

// Run works turns, renews leases and looks for dead workers until ctx ends. Then
// it hands its running turns over: a tool that is under way may finish, within the
// grace period.
func (s *Service) Run(ctx context.Context) error {
	if s.cfg.Workers > 0 {
		if err := s.river.Start(context.WithoutCancel(ctx)); err != nil {
			return fmt.Errorf("start River: %w", err)
		}
	}
	beating, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	var g errgroup.Group
	g.Go(func() error { return s.heartbeat(beating) })
	g.Go(func() error { return s.reap(ctx) })
	<-ctx.Done()
	err := s.drain()
	stop()
	return errors.Join(err, g.Wait())
}

// Start stores a message and has its turn run. When it returns without an error
// the message is durable and will be answered. A request that was sent before, by
// its Idempotency-Key or by the last event it saw, finds its turn instead.
func (s *Service) Start(ctx context.Context, req Request) (Started, error) {
	if req.LastEvent > 0 {
		return s.resent(ctx, req)
	}
	started := Started{Turn: uuid.Must(uuid.NewV7())}
	ref := session.Ref{Workspace: req.Workspace.ID, ID: req.Session, CallerID: req.CallerID}
	limits := req.Limits.within(req.Workspace)
	err := s.cfg.Sessions.Open(ctx, ref, func(tx *session.Tx) (err error) {
		if req.IdempotencyKey != "" {
			if err := tx.Take(ctx, req.once(), started.Turn); err != nil {
				return err
			}
		}
		started.From, err = tx.Begin(ctx, session.NewTurn{
			ID: started.Turn, Message: event.Message{Content: req.Command}, Key: req.Key, RequestHash: req.Hash,
			MaxResponseSeconds: limits.MaxResponseSeconds, MaxTurns: limits.MaxTurns,
		})
		if err != nil {
			return err
		}
		return s.enqueue(ctx, tx, started.Turn)
	})
	if errors.Is(err, session.ErrRepeated) {
		started.Replayed = true
		started.Turn, started.From, err = s.cfg.Sessions.Repeated(ctx, req.once())
		if err == nil && started.Turn == uuid.Nil {
			err = errors.New("the turn of an idempotency key is gone")
		}
	}
	started.Session = started.From.Session
	return started, err
}

// resent finds the turn of a message that a client sends again after a drop. It
// never starts a second one.
func (s *Service) resent(ctx context.Context, req Request) (Started, error) {
	turn, from, err := s.cfg.Sessions.Resent(ctx, req.Workspace.ID, req.Hash, req.LastEvent)
	if err == nil && turn == uuid.Nil {
		err = &fault.Error{Code: fault.InvalidCursor, Param: "Last-Event-ID",
			Message: "Last-Event-ID names no event of an earlier attempt at this very message. Leave it out to send the message anew."}
	}
	return Started{Session: from.Session, Turn: turn, From: from, Replayed: true}, err
}

// enqueue inserts the job that will run a turn, in the transaction that queued it.
func (s *Service) enqueue(ctx context.Context, tx *session.Tx, turn uuid.UUID) error {
	job, err := s.river.InsertTx(ctx, tx.Tx, args{Turn: turn, Session: tx.Session.ID}, nil)
	if err != nil {
		return fmt.Errorf("insert job: %w", err)
	}
	return tx.Job(ctx, turn, job.Job.ID)
}

// within lowers a workspace's limits to what the request asks for.
func (l Limits) within(w workspace.Workspace) Limits {
	return Limits{
		MaxResponseSeconds: lower(l.MaxResponseSeconds, int(w.MaxResponseSeconds)),
		MaxTurns:           lower(l.MaxTurns, int(w.MaxTurns)),
	}
}

func lower(asked, limit int) int {
	if asked <= 0 {
		asked = math.MaxInt
	}
	return min(asked, limit)
}
