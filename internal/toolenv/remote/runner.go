package remote

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/parley-server/parley/internal/fair"
	"github.com/parley-server/parley/internal/toolenv/sandbox"
)

// RunnerConfig configures a Runner.
type RunnerConfig struct {
	Sandbox  *sandbox.Sandbox
	Token    string
	Commands int // concurrent commands; more wait
	Version  string
	Log      *slog.Logger // nil discards
}

// Runner runs commands for servers. It keeps nothing of a command.
type Runner struct {
	cfg    RunnerConfig
	log    *slog.Logger
	places *fair.Places

	mu       sync.Mutex
	stopping bool
	commands sync.WaitGroup
	ctx      context.Context // of all commands
	kill     context.CancelCauseFunc
}

// NewRunner returns a runner.
func NewRunner(cfg RunnerConfig) *Runner {
	r := &Runner{cfg: cfg, log: cmp.Or(cfg.Log, slog.New(slog.DiscardHandler)), places: fair.New(cfg.Commands)}
	r.ctx, r.kill = context.WithCancelCause(context.Background())
	return r
}

// ServeHTTP implements http.Handler.
func (r *Runner) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	w.Header().Set(versionHeader, r.cfg.Version)
	switch {
	case req.URL.Path == healthPath && req.Method == http.MethodGet:
		r.serveHealth(w, req)
	case req.URL.Path == commandPath && req.Method == http.MethodPost:
		r.serveCommand(w, req)
	default:
		http.NotFound(w, req)
	}
}

// serveHealth reports whether the runner takes commands: those of the client, if it sends a token.
func (r *Runner) serveHealth(w http.ResponseWriter, req *http.Request) {
	if req.Header.Get("Authorization") != "" && !r.admit(w, req) {
		return
	}
	r.mu.Lock()
	stopping := r.stopping
	r.mu.Unlock()
	if stopping {
		http.Error(w, "stopping", http.StatusServiceUnavailable)
		return
	}
	fmt.Fprintln(w, "ok")
}

// admit checks the token and the protocol of a client. It responds if it rejects them.
func (r *Runner) admit(w http.ResponseWriter, req *http.Request) bool {
	scheme, token, _ := strings.Cut(req.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") || !isToken(token, r.cfg.Token) {
		r.log.WarnContext(req.Context(), "request rejected: wrong token", "remote", req.RemoteAddr)
		http.Error(w, "The token is not that of this runner.", http.StatusUnauthorized)
		return false
	}
	if n := protocolOf(req.Header.Get("Upgrade")); n != Protocol {
		r.log.WarnContext(req.Context(), "request rejected: another protocol", "protocol", n, "own", Protocol, "version",
			req.Header.Get(versionHeader))
		w.Header().Set("Upgrade", upgradeName+strconv.Itoa(Protocol))
		http.Error(w, "The server and the runner are of different releases.", http.StatusUpgradeRequired)
		return false
	}
	return true
}

func (r *Runner) serveCommand(w http.ResponseWriter, req *http.Request) {
	if !r.admit(w, req) {
		return
	}
	if !r.begin() {
		http.Error(w, "The runner is stopping.", http.StatusServiceUnavailable)
		return
	}
	defer r.commands.Done()
	conn, err := r.upgrade(w)
	if err != nil {
		r.log.WarnContext(req.Context(), "upgrade a connection", "err", err)
		return
	}
	r.runCommand(conn, req.RemoteAddr)
}

// begin counts a command, unless the runner is stopping.
func (r *Runner) begin() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.stopping {
		r.commands.Add(1)
	}
	return !r.stopping
}

// upgrade takes the connection over from HTTP.
func (r *Runner) upgrade(w http.ResponseWriter) (net.Conn, error) {
	c, buf, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return nil, err
	}
	_ = c.SetDeadline(time.Now().Add(answerTime))
	_, err = fmt.Fprintf(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: %s%d\r\n%s: %s\r\n%s: %t\r\n\r\n",
		upgradeName, Protocol, versionHeader, r.cfg.Version, limitedHeader, r.cfg.Sandbox.Limited() == nil)
	if err != nil {
		c.Close()
		return nil, err
	}
	_ = c.SetDeadline(time.Time{})
	return &upgraded{c, buf.Reader}, nil
}

// upgraded is a connection with the bytes that the HTTP server has read from it.
type upgraded struct {
	net.Conn
	r *bufio.Reader
}

func (u *upgraded) Read(b []byte) (int, error) { return u.r.Read(b) }

// Serve serves until ctx ends. Then running commands have drain to end, and are killed.
func (r *Runner) Serve(ctx context.Context, l net.Listener, drain time.Duration) error {
	server := &http.Server{Handler: r, ReadTimeout: answerTime, WriteTimeout: answerTime, IdleTimeout: time.Minute, MaxHeaderBytes: 16 << 10,
		ErrorLog: slog.NewLogLogger(r.log.Handler(), slog.LevelDebug)}
	server.Protocols = new(http.Protocols)
	server.Protocols.SetHTTP1(true) // only its connections can be upgraded
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(l) }()
	var err error
	select {
	case err = <-failed:
	case <-ctx.Done():
		r.stop(drain)
		err = server.Close()
		<-failed
	}
	r.kill(errStopped)
	r.commands.Wait()
	return err
}

// stop rejects new commands, and waits for the running ones.
func (r *Runner) stop(drain time.Duration) {
	r.mu.Lock()
	r.stopping = true
	r.mu.Unlock()
	done := make(chan struct{})
	go func() {
		r.commands.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(drain):
		r.log.Warn("commands are killed: they did not end in time", "after", drain)
	}
}
