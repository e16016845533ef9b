package turn_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"go.uber.org/goleak"

	"github.com/parley-server/parley/internal/egress"
	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/eventlog"
	"github.com/parley-server/parley/internal/model"
	"github.com/parley-server/parley/internal/model/openai"
	"github.com/parley-server/parley/internal/session"
	"github.com/parley-server/parley/internal/store/callback"
	"github.com/parley-server/parley/internal/store/filestore"
	"github.com/parley-server/parley/internal/store/skill"
	"github.com/parley-server/parley/internal/store/vault"
	"github.com/parley-server/parley/internal/store/workspace"
	"github.com/parley-server/parley/internal/testing/dbtest"
	"github.com/parley-server/parley/internal/testing/modeltest"
	"github.com/parley-server/parley/internal/testing/slow"
	"github.com/parley-server/parley/internal/tool"
	"github.com/parley-server/parley/internal/toolenv"
	"github.com/parley-server/parley/internal/turn"

	"github.com/parley-server/parley/internal/testing/wait"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is a database, a workspace and a scripted provider.
type world struct {
	dsn       string
	pool      *pgxpool.Pool
	workspace workspace.Workspace
	keys      *vault.Keyring
	model     model.Model
	tools     []tool.Tool
}

func newWorld(t testing.TB, script *modeltest.Script) *world {
	t.Helper()
	slow.Test(t, "runs turns",
		"TestTurnAnswers", "TestTurnEndsByItsLimits", "TestWaitingCostsNothing",
		"TestSecondMessageIsRefusedWhileOneIsAnswered")
	provider := modeltest.OpenAI(script)
	t.Cleanup(func() {
		provider.CloseClientConnections()
		provider.Close()
	})
	w := &world{dsn: dbtest.DSN(t)}
	w.pool = dbtest.Pool(t, w.dsn)
	w.model = openai.New(openai.Config{Model: "gpt-5-mini", APIKey: "sk-test", BaseURL: provider.URL + "/v1", HTTPClient: provider.Client()})
	ws, err := workspace.New(w.pool).Create(t.Context(), "w", "", "Be brief.")
	if err != nil {
		t.Fatal(err)
	}
	w.workspace = ws
	if w.keys, err = vault.ParseKeys(vault.GenerateKey()); err != nil {
		t.Fatal(err)
	}
	return w
}

// stores sets the stores of a service.
func (w *world) stores(t testing.TB, pool *pgxpool.Pool, cfg *turn.Config) {
	t.Helper()
	guard, err := egress.New(egress.Config{})
	if err != nil {
		t.Fatal(err)
	}
	cfg.Skills, cfg.Vault = skill.New(pool), vault.New(pool, w.keys)
	cfg.Files, cfg.Callbacks = filestore.New(pool, w.keys, filestore.Options{}), callback.NewStore(pool, w.keys, guard)
	if err := cfg.Vault.Prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// replica holds the parts of one Parley process.
type replica struct {
	events   *eventlog.Log
	sessions *session.Store
	turns    *turn.Service
	stop     func() // hands its turns over, then stops
}

func (w *world) replica(t testing.TB, change func(*turn.Config)) *replica {
	t.Helper()
	log := slog.New(slog.NewTextHandler(t.Output(), nil))
	pool := dbtest.Pool(t, w.dsn+poolSize(w.dsn))
	events := eventlog.New(pool, eventlog.Options{Log: log})
	r := &replica{events: events, sessions: session.New(pool, events, session.Options{Log: log})}
	cfg := turn.Config{
		Pool: pool, EventLog: r.events, Sessions: r.sessions,
		Tools: func(*toolenv.Run) []tool.Tool { return w.tools }, Log: log, Workers: 20,
		Model:        func(context.Context, uuid.UUID, string) (model.Model, error) { return w.model, nil },
		DefaultModel: w.model.Name(),
	}
	w.stores(t, pool, &cfg)
	if change != nil {
		change(&cfg)
	}
	var err error
	if r.turns, err = turn.New(cfg); err != nil {
		t.Fatal(err)
	}
	log1, stopLog := run(t, r.events.Run)
	log2, stopTurns := run(t, r.turns.Run)
	stopped := false
	r.stop = func() {
		if stopped {
			return
		}
		stopped = true
		stopTurns()
		if err := wait.Receive(t, "the end of the turns", log2); err != nil {
			t.Errorf("turns: %v", err)
		}
		stopLog()
		if err := wait.Receive(t, "the end of the log", log1); err != nil {
			t.Errorf("events: %v", err)
		}
	}
	t.Cleanup(r.stop)
	return r
}

func run(t testing.TB, f func(context.Context) error) (chan error, func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- f(ctx) }()
	return done, cancel
}

func poolSize(dsn string) string {
	if strings.Contains(dsn, "?") {
		return "&pool_max_conns=16"
	}
	return "?pool_max_conns=16"
}

func (w *world) start(t testing.TB, r *replica, command string) turn.Started {
	t.Helper()
	st, err := r.turns.Start(t.Context(), turn.Request{Workspace: w.workspace, Command: command})
	if err != nil {
		t.Fatal(err)
	}
	return st
}

// read follows a turn to its end.
func read(t testing.TB, r *replica, st turn.Started) []event.Event {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	var all []event.Event
	for evs, err := range r.events.Follow(ctx, st.From) {
		if err != nil {
			t.Fatalf("follow: %v; so far: %v", err, kinds(all))
		}
		all = append(all, evs...)
		if all[len(all)-1].Kind == event.KindDone {
			break
		}
	}
	return all
}

func kinds(evs []event.Event) string {
	var names []string
	for _, ev := range evs {
		if n := string(ev.Kind); len(names) == 0 || n != "text" || names[len(names)-1] != n {
			names = append(names, n)
		}
	}
	return strings.Join(names, " ")
}

func text(evs []event.Event) string {
	var b strings.Builder
	for _, ev := range evs {
		if body, _ := ev.Body(); ev.Kind == event.KindText {
			b.WriteString(body.(event.Text).Text)
		}
	}
	return b.String()
}

func failure(evs []event.Event) event.Code {
	for _, ev := range evs {
		if body, _ := ev.Body(); ev.Kind == event.KindError {
			return body.(event.Error).Code
		}
	}
	return ""
}

// ledger is a tool that records each time it really runs, and waits until the test releases it.
type ledger struct {
	w          *world
	idempotent bool
	entered    chan struct{}
	leave      chan struct{}
}

func newLedger(t testing.TB, w *world, idempotent bool) *ledger {
	t.Helper()
	if _, err := w.pool.Exec(t.Context(), `CREATE TABLE ledger (id text)`); err != nil {
		t.Fatal(err)
	}
	l := &ledger{w: w, idempotent: idempotent, entered: make(chan struct{}, 20), leave: make(chan struct{}, 20)}
	w.tools = append(w.tools, l)
	return l
}

func (l *ledger) Spec() tool.Spec {
	return tool.Spec{Name: "book", Description: "Books.", Schema: json.RawMessage(`{"type":"object"}`), Idempotent: l.idempotent}
}

func (l *ledger) Call(ctx context.Context, c tool.Call) (tool.Result, error) {
	if _, err := l.w.pool.Exec(context.WithoutCancel(ctx), `INSERT INTO ledger VALUES ($1)`, c.ID); err != nil {
		return tool.Result{}, err
	}
	l.entered <- struct{}{}
	select {
	case <-ctx.Done():
		return tool.Result{}, ctx.Err()
	case <-l.leave:
	}
	return tool.Result{OK: true, Output: "booked"}, nil
}

func (l *ledger) entries(t testing.TB) (n int) {
	t.Helper()
	if err := l.w.pool.QueryRow(t.Context(), `SELECT count(*) FROM ledger`).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}
