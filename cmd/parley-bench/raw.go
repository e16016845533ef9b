package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/agent"
	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/model/builtin"
	"github.com/parley-server/parley/internal/sse"
)

// source provides the streams of the raw and the naive server.
type source interface {
	// start runs a turn, whose events follow yields.
	start(ctx context.Context, command string) (session uuid.UUID, err error)
	follow(ctx context.Context, session uuid.UUID, cursor int64, each func([]event.Event) error) error
}

// serveSource runs the service's HTTP server with another source.
func serveSource(ctx context.Context, src source, ready func(url string)) error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /api/v1/workspaces/{workspace}/messages", func(w http.ResponseWriter, r *http.Request) {
		var body struct{ Command string }
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		session, err := src.start(ctx, body.Command)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		streamSource(w, r, src, session, 0)
	})
	mux.HandleFunc("GET /api/v1/workspaces/{workspace}/sessions/{session}/events", func(w http.ResponseWriter, r *http.Request) {
		session, err := uuid.Parse(r.PathValue("session"))
		cursor, bad := strconv.ParseInt(r.Header.Get("Last-Event-ID"), 10, 64)
		if err := errors.Join(err, bad); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		streamSource(w, r, src, session, cursor)
	})
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 16 << 10,
		BaseContext: func(net.Listener) context.Context { return ctx }}
	stop := context.AfterFunc(ctx, func() { server.Close() })
	defer stop()
	ready("http://" + l.Addr().String())
	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// streamSource writes frames with the service's own writer, with one flush for all that are ready.
func streamSource(w http.ResponseWriter, r *http.Request, src source, session uuid.UUID, cursor int64) {
	sw := sse.Open(w, sse.Options{})
	defer sw.Close()
	_ = src.follow(r.Context(), session, cursor, func(evs []event.Event) error {
		for _, ev := range evs {
			if err := sw.Event(string(ev.Kind), ev.Seq, ev.Data); err != nil {
				return err
			}
			if ev.Kind == event.KindDone {
				return errors.Join(sw.Flush(), errStopped)
			}
		}
		return sw.Flush()
	})
}

// runModel runs the agent and the offline model through a turn.
func runModel(ctx context.Context, g *builtin.Guide, session uuid.UUID, command string, each func(event.Body) error) error {
	data, err := event.Encode(event.Message{Content: command})
	if err != nil {
		return err
	}
	if err := each(event.Open{SessionID: session}); err != nil {
		return err
	}
	a := agent.Agent{Model: g, MaxTurns: 1, Log: slog.New(slog.DiscardHandler)}
	for bodies, err := range a.Run(ctx, agent.Conversation{Session: session, Log: []event.Event{{Kind: event.KindMessage, Data: data}}}) {
		if err != nil {
			return fmt.Errorf("run the agent: %w", err)
		}
		for _, b := range bodies {
			if b.Kind().Public() {
				if err := each(b); err != nil {
					return err
				}
			}
		}
	}
	return each(event.Done{SessionID: session})
}

// rawSource keeps the events of a turn in memory until its one stream has read them.
type rawSource struct {
	guide *builtin.Guide
	seq   atomic.Int64
	pipes sync.Map // session → *pipe
}

// pipe holds the events that wait for a stream. A writer that is far ahead waits.
type pipe struct {
	mu      sync.Mutex
	ready   sync.Cond
	waiting []event.Event
	err     error
}

// pipeLimit is how far the model may be ahead, as in the service.
const pipeLimit = 256

func serveRaw(ctx context.Context, ready func(url string)) error {
	return serveSource(ctx, &rawSource{guide: builtin.New()}, ready)
}

func (s *rawSource) start(ctx context.Context, command string) (uuid.UUID, error) {
	id := uuid.Must(uuid.NewV7())
	p := &pipe{}
	p.ready.L = &p.mu
	s.pipes.Store(id, p)
	go func() {
		err := runModel(ctx, s.guide, id, command, func(b event.Body) error {
			data, err := event.Encode(b)
			if err != nil {
				return err
			}
			return p.put(event.Event{Seq: s.seq.Add(1), Session: id, Kind: b.Kind(), Data: data})
		})
		if err != nil {
			p.close(err)
		}
	}()
	return id, nil
}

func (s *rawSource) follow(ctx context.Context, session uuid.UUID, _ int64, each func([]event.Event) error) error {
	v, ok := s.pipes.LoadAndDelete(session)
	if !ok {
		return errors.New("the raw server cannot resume")
	}
	p := v.(*pipe)
	stop := context.AfterFunc(ctx, func() { p.close(context.Cause(ctx)) })
	defer stop()
	defer p.close(errStopped)
	for {
		evs, err := p.take()
		if err != nil {
			return err
		}
		if err := each(evs); err != nil {
			return err
		}
	}
}

func (p *pipe) put(ev event.Event) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(p.waiting) >= pipeLimit && p.err == nil {
		p.ready.Wait()
	}
	p.waiting = append(p.waiting, ev)
	p.ready.Broadcast()
	return p.err
}

func (p *pipe) take() ([]event.Event, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(p.waiting) == 0 && p.err == nil {
		p.ready.Wait()
	}
	evs := p.waiting
	p.waiting = nil
	p.ready.Broadcast()
	return evs, p.err
}

func (p *pipe) close(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err == nil {
		p.err = err
	}
	p.ready.Broadcast()
}
