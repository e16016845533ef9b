// Package apitest runs one process on a database of its own, for the tests of the protocols: every
// store, the offline model, running turns. A test adds the protocol.
//
// It promises: nothing outlives its test, and limits are high unless a test lowers them.
package apitest

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-server/parley/internal/egress"
	"github.com/parley-server/parley/internal/eventlog"
	"github.com/parley-server/parley/internal/model"
	"github.com/parley-server/parley/internal/model/builtin"
	"github.com/parley-server/parley/internal/replan"
	"github.com/parley-server/parley/internal/server"
	"github.com/parley-server/parley/internal/server/admin"
	"github.com/parley-server/parley/internal/server/rest"
	"github.com/parley-server/parley/internal/session"
	"github.com/parley-server/parley/internal/store/account"
	"github.com/parley-server/parley/internal/store/adminlog"
	"github.com/parley-server/parley/internal/store/agent"
	"github.com/parley-server/parley/internal/store/apikey"
	"github.com/parley-server/parley/internal/store/budget"
	"github.com/parley-server/parley/internal/store/callback"
	"github.com/parley-server/parley/internal/store/filestore"
	"github.com/parley-server/parley/internal/store/modelset"
	"github.com/parley-server/parley/internal/store/permission"
	"github.com/parley-server/parley/internal/store/ratelimit"
	"github.com/parley-server/parley/internal/store/skill"
	"github.com/parley-server/parley/internal/store/toolset"
	"github.com/parley-server/parley/internal/store/vault"
	"github.com/parley-server/parley/internal/store/wiki"
	"github.com/parley-server/parley/internal/store/workspace"
	"github.com/parley-server/parley/internal/testing/apicheck"
	"github.com/parley-server/parley/internal/testing/dbtest"
	"github.com/parley-server/parley/internal/testing/wait"
	"github.com/parley-server/parley/internal/tool"
	"github.com/parley-server/parley/internal/tool/attach"
	"github.com/parley-server/parley/internal/tool/httptool"
	"github.com/parley-server/parley/internal/tool/mcptool"
	"github.com/parley-server/parley/internal/toolenv"
	"github.com/parley-server/parley/internal/toolenv/workdir"
	"github.com/parley-server/parley/internal/turn"
)

// Service is a process. Its parts run until the test ends.
type Service struct {
	Pool       *pgxpool.Pool
	Ring       *vault.Keyring
	Keys       *apikey.Store
	Accounts   *account.Store
	Workspaces *workspace.Store
	EventLog   *eventlog.Log
	Sessions   *session.Store
	Skills     *skill.Store
	Agents     *agent.Store
	Wiki       *wiki.Store
	Vault      *vault.Store
	Files      *filestore.Store
	Callbacks  *callback.Store
	Limits     *ratelimit.Store
	Turns      *turn.Service
	Guard      *egress.Guard
	Log        *slog.Logger

	Workspace workspace.Workspace // the workspace demo
	Key       string              // a key with all scopes
	Gate      *Gate

	Listener net.Listener // where Serve listens; nil: a new one

	// Set by Serve.
	URL       string
	Transport *http.Transport
	Halt      context.CancelFunc // ends requests, like a process that stops
}

// Options are the parts that a test can change.
type Options struct {
	Pool   *pgxpool.Pool              // nil: one on a fresh database
	Peer   *Service                   // an earlier process on the same database, whose keys and gate it shares
	Gate   string                     // name of the tool that waits; "": gate
	Limits ratelimit.Limits           // zero: plenty
	Egress egress.Config              // the policy for callbacks
	Tools  func(*Service) []tool.Tool // in addition to the gate and attach_file
	Turns  func(*turn.Config)
}

// Plenty are limits that no test reaches, although everything is counted.
var Plenty = ratelimit.Limits{Messages: 100_000, Calls: 100_000, Streams: 1000}

// New starts the parts of a process.
func New(t testing.TB, opt Options) *Service {
	t.Helper()
	pool := opt.Pool
	if pool == nil {
		pool = dbtest.New(t)
	}
	log := slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelInfo}))
	s := &Service{Pool: pool, Log: log, Keys: apikey.New(pool, log), Accounts: account.New(pool, log), Workspaces: workspace.New(pool),
		Skills: skill.New(pool), Agents: agent.New(pool), Wiki: wiki.New(pool)}
	if opt.Peer != nil {
		s.Ring, s.Gate, s.Workspace, s.Key = opt.Peer.Ring, opt.Peer.Gate, opt.Peer.Workspace, opt.Peer.Key
	} else {
		s.found(t, opt)
	}
	s.Vault = vault.New(pool, s.Ring)
	if err := s.Vault.Prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	guard, err := egress.New(opt.Egress)
	if err != nil {
		t.Fatal(err)
	}
	s.Guard = guard
	s.Files = filestore.New(pool, s.Ring, filestore.Options{})
	s.Callbacks = callback.NewStore(pool, s.Ring, guard)
	s.EventLog = eventlog.New(pool, eventlog.Options{Log: log})
	s.Sessions = session.New(pool, s.EventLog, session.Options{Log: log, Erase: []session.Eraser{s.Files.Erase, s.Callbacks.Erase,
		workdir.New(pool, workdir.Options{}).Erase, toolset.NewStore(pool).Erase}})
	if opt.Limits == (ratelimit.Limits{}) {
		opt.Limits = Plenty
	}
	s.Limits = ratelimit.New(pool, ratelimit.Options{Limits: opt.Limits, Node: s.EventLog.Node(), Log: log})
	s.turns(t, opt)
	for _, part := range []func(context.Context) error{s.EventLog.Run, s.Sessions.Run, s.Turns.Run, s.Keys.Run, s.Accounts.Run, s.Limits.Run} {
		Run(t, part)
	}
	return s
}

// found creates the objects that processes on one database share.
func (s *Service) found(t testing.TB, opt Options) {
	t.Helper()
	s.Gate = &Gate{cmp.Or(opt.Gate, "gate"), make(chan struct{}, 100), make(chan struct{}, 100)}
	var err error
	if s.Workspace, err = s.Workspaces.Create(t.Context(), "demo", "Demo", ""); err != nil {
		t.Fatal(err)
	}
	s.Key = s.Issue(t, s.Workspace, apikey.All...)
	if s.Ring, err = vault.ParseKeys(vault.GenerateKey()); err != nil {
		t.Fatal(err)
	}
}

// turns creates the parts that run turns.
func (s *Service) turns(t testing.TB, opt Options) {
	t.Helper()
	guide := builtin.New()
	cfg := turn.Config{
		Pool: s.Pool, EventLog: s.EventLog, Sessions: s.Sessions, Skills: s.Skills, Vault: s.Vault, Files: s.Files, Callbacks: s.Callbacks,
		Tools: func(*toolenv.Run) []tool.Tool {
			list := []tool.Tool{s.Gate, attach.Tool(s.Files, nil)}
			if opt.Tools != nil {
				list = append(list, opt.Tools(s)...)
			}
			return list
		},
		Model: func(context.Context, uuid.UUID, string) (model.Model, error) {
			return guide, nil
		}, DefaultModel: guide.Name(), Log: s.Log, Workers: 20,
		StartTimeout: 20 * time.Second, // other tests keep the machine busy
	}
	if opt.Turns != nil {
		opt.Turns(&cfg)
	}
	var err error
	if s.Turns, err = turn.New(cfg); err != nil {
		t.Fatal(err)
	}
}

// Server returns a server on the service's stores; change may be nil. A database that is slow
// because of other tests does not count as unavailable.
func (s *Service) Server(t testing.TB, change func(*server.Config)) *server.Server {
	t.Helper()
	cfg := server.Config{
		EventLog: s.EventLog, Sessions: s.Sessions, Workspaces: s.Workspaces, Keys: s.Keys, Accounts: s.Accounts, Turns: s.Turns,
		Skills: s.Skills, Agents: s.Agents, Files: s.Files,
		Callbacks: s.Callbacks, Vault: s.Vault, Limits: s.Limits, Log: s.Log, Timeout: time.Minute,
	}
	if change != nil {
		change(&cfg)
	}
	srv, err := server.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return srv
}

// Administration returns the stores of the administration API.
func (s *Service) Administration() admin.Stores {
	runner := toolenv.New(toolenv.Config{Pool: s.Pool, Guard: s.Guard, Vault: s.Vault})
	return admin.Stores{
		Log: adminlog.New(s.Pool), Budgets: budget.New(s.Pool), Permissions: permission.New(s.Pool), Vault: s.Vault, Runner: runner,
		Wiki: s.Wiki, Folders: workdir.New(s.Pool, workdir.Options{}), Toolset: toolset.NewStore(s.Pool), Modelset: modelset.New(s.Pool),
		TestModel: func(_ context.Context, _ uuid.UUID, name string) (admin.ModelTest, error) {
			return admin.ModelTest{Model: name, OK: true}, nil
		},
		HTTPProbe: httptool.Probe{Sender: httptool.Sender{Sign: s.Callbacks.SignRequest}, Open: func(workspace uuid.UUID) httptool.ClosingEnv {
			return runner.OpenProbe(workspace)
		}},
		Probe: mcptool.Probe{Open: func(workspace uuid.UUID) mcptool.ClosingEnv { return runner.OpenProbe(workspace) }},
		Tools: func() []tool.Spec { return []tool.Spec{attach.Tool(s.Files, nil).Spec()} },
		System: func(context.Context) (admin.System, error) { // app describes a process
			return admin.System{Migrations: admin.Migrations{Pending: []string{}}, Queues: []admin.Queue{}, FailedJobs: []admin.Job{},
				Settings: []admin.Setting{}}, nil
		},
		Rehearse: replan.RehearseOn(s.Pool),
		DeleteWorkspace: func(ctx context.Context, id uuid.UUID, by string) (sessions, canceled int, err error) {
			sessions, canceled, err = s.Sessions.EraseAll(ctx, id, by)
			return sessions, canceled, errors.Join(err, s.Workspaces.Delete(ctx, id))
		},
	}
}

// Asking makes tools without a rule need an approval.
func Asking(c *turn.Config) { c.Permissions = permission.New(c.Pool) }

// Serve listens with a handler.
func (s *Service) Serve(t testing.TB, handler http.Handler) {
	t.Helper()
	srv := httptest.NewUnstartedServer(handler)
	base, halt := context.WithCancel(context.Background())
	srv.Config.MaxHeaderBytes = rest.HeaderBytes
	if s.Listener != nil {
		_ = srv.Listener.Close()
		srv.Listener = s.Listener
	}
	srv.Config.BaseContext = func(net.Listener) context.Context { return base }
	srv.Start()
	s.URL, s.Halt, s.Transport = srv.URL, halt, &http.Transport{DisableCompression: true}
	t.Cleanup(func() {
		halt()
		s.Transport.CloseIdleConnections()
		srv.Close()
	})
}

// Checked returns the transport of a client that compares every response with the OpenAPI document.
// Call it after Serve.
func (s *Service) Checked(t testing.TB) http.RoundTripper {
	t.Helper()
	srv := s.Server(t, nil)
	routes, err := rest.New(srv, nil)
	if err != nil {
		t.Fatal(err)
	}
	return &apicheck.Transport{T: t, Next: s.Transport, Doc: apicheck.Load(t, srv.NewRouter(routes))}
}

// Run keeps f running until the test ends.
func Run(t testing.TB, f func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- f(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := wait.Receive(t, "the end", done); err != nil {
			t.Errorf("stopped with %v", err)
		}
	})
}

// Issue creates a key.
func (s *Service) Issue(t testing.TB, ws workspace.Workspace, scopes ...apikey.Scope) string {
	t.Helper()
	_, text, err := s.Keys.Create(t.Context(), apikey.Grant{Workspace: ws.ID, Name: t.Name()[:min(len(t.Name()), 100)], Scopes: scopes})
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// Another creates a second workspace and a key with all scopes in it.
func (s *Service) Another(t testing.TB) (workspace.Workspace, string) {
	t.Helper()
	ws, err := s.Workspaces.Create(t.Context(), "another", "", "")
	if err != nil {
		t.Fatal(err)
	}
	return ws, s.Issue(t, ws, apikey.All...)
}
