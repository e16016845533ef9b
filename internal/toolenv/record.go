package toolenv

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/parley-server/parley/db"
	"github.com/parley-server/parley/internal/egress"
	"github.com/parley-server/parley/internal/tool"
)

// Policy lists the hosts to which the tools of a workspace may send requests, besides the hosts of
// a run's credentials.
type Policy struct {
	Hosts  []string // in the form of vault.Host, sorted
	Public bool     // every public host
	// UpdatedAt is the time of the last change; zero: the workspace has no policy yet.
	UpdatedAt time.Time
}

// Policy reads a workspace's policy. Without one, no other host can be reached.
func (r *Runner) Policy(ctx context.Context, workspace uuid.UUID) (Policy, error) {
	p, err := r.q.EgressPolicy(ctx, workspace)
	if errors.Is(err, pgx.ErrNoRows) {
		return Policy{}, nil
	}
	if err != nil {
		return Policy{}, fmt.Errorf("read where requests may go: %w", err)
	}
	return Policy{Hosts: p.Hosts, Public: p.Public, UpdatedAt: p.UpdatedAt}, nil
}

// Request is the record of a request that a tool sent or was not allowed to send.
type Request struct {
	ID          int64
	SessionID   uuid.UUID
	TurnID      uuid.UUID
	CallID      string
	At          time.Time
	Method      string
	Scheme      string
	Host        string
	Path        string
	Credentials []string // name@version
	Refused     []string // names of credentials that may not go to the host
	Decision    string
	Status      *int // status of the response
	Times       int  // requests refused to one host within a minute share a record
}

// Requests lists the newest requests of a workspace, or of one session of it.
func (r *Runner) Requests(ctx context.Context, workspace uuid.UUID, session *uuid.UUID, limit int) ([]Request, error) {
	rows, err := r.q.EgressRequests(ctx, workspace, session, int32(limit))
	if err != nil {
		return nil, fmt.Errorf("list requests: %w", err)
	}
	list := make([]Request, len(rows))
	for i, row := range rows {
		list[i] = requestOf(row)
	}
	return list, nil
}

func requestOf(r db.EgressRequest) Request {
	req := Request{
		ID: r.ID, SessionID: r.SessionID, TurnID: r.TurnID, CallID: r.CallID, At: r.At,
		Method: r.Method, Scheme: r.Scheme, Host: r.Host, Path: r.Path,
		Credentials: r.Credentials, Refused: r.Refused, Decision: r.Decision, Times: int(r.Times),
	}
	if r.Status != nil {
		req.Status = new(int(*r.Status))
	}
	return req
}

// recordTime limits how long a request waits for its record.
const recordTime = 3 * time.Second

// recordRequest records a request before it leaves. A request does not leave if its credential was
// removed after the run began.
func (x *Run) recordRequest(ctx context.Context, req egress.Request) (done func(status int, decision string), err error) {
	if req.Decision != egress.Sent {
		x.r.cfg.Metrics.EgressRequests.WithLabelValues("refused").Inc()
		return nil, x.recordRefusal(ctx, req)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTime)
	defer cancel()
	id, err := x.insertRequest(ctx, req)
	if err != nil {
		return nil, err
	}
	done = func(status int, decision string) {
		if isOfServer(ctx) && decision != egress.RefusedAddress { // a call does not wait for it
			x.records.start(func() { x.recordAnswer(ctx, id, req, status, decision) })
			return
		}
		x.recordAnswer(ctx, id, req, status, decision)
	}
	if len(req.Credentials) == 0 {
		return done, nil
	}
	names := make([]string, len(req.Credentials))
	for i, u := range req.Credentials {
		names[i] = u.Name
	}
	removed, err := x.r.q.CredentialsRemoved(ctx, x.t.Workspace, names)
	if err != nil {
		return nil, fmt.Errorf("look whether a credential was removed: %w", err)
	}
	if removed {
		done(0, egress.RefusedRequest)
		return nil, egress.Refused("An administrator has removed %s since this turn began.", strings.Join(names, " or "))
	}
	return done, nil
}

// background runs functions beside a run until it is closed, and later ones at once.
type background struct {
	mu       sync.Mutex
	running  sync.WaitGroup
	finished bool
}

func (b *background) start(f func()) {
	b.mu.Lock()
	if b.finished {
		b.mu.Unlock()
		f()
		return
	}
	b.running.Go(f)
	b.mu.Unlock()
}

// finish waits for all functions.
func (b *background) finish() {
	b.mu.Lock()
	b.finished = true
	b.mu.Unlock()
	b.running.Wait()
}

// recordAnswer completes the record of a request.
func (x *Run) recordAnswer(ctx context.Context, id int64, req egress.Request, status int, decision string) {
	outcome := "ok"
	if decision != egress.Sent {
		outcome = "refused"
	} else if status == 0 {
		outcome = "failed"
	}
	x.r.cfg.Metrics.EgressRequests.WithLabelValues(outcome).Inc()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTime)
	defer cancel()
	var err error
	var answered *int32
	if status > 0 {
		answered = new(int32(status))
	}
	if decision == egress.RefusedAddress {
		req.Decision = decision
		err = x.refuseRecorded(ctx, id, req)
	} else {
		err = x.r.q.EgressRequestDone(ctx, answered, decision, id)
	}
	if err != nil {
		x.log.WarnContext(ctx, "put the answer to a request on record", "egress_request", id, "err", err)
	}
}

// insertRequest inserts the row of a request.
func (x *Run) insertRequest(ctx context.Context, req egress.Request) (id int64, err error) {
	used := make([]string, len(req.Credentials))
	for i, u := range req.Credentials {
		used[i] = fmt.Sprintf("%s@%d", u.Name, u.Version)
	}
	refused := req.Refused
	if refused == nil {
		refused = []string{}
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTime)
	defer cancel()
	id, err = x.r.q.EgressRequestInsert(ctx, db.EgressRequestInsertParams{
		WorkspaceID: x.t.Workspace, SessionID: x.t.Session, TurnID: x.t.Turn, CallID: x.callOf(ctx),
		Method: req.Method, Scheme: req.Scheme, Host: req.Host, Path: req.Path, Credentials: used, Refused: refused, Decision: req.Decision,
		Lazy: tool.HasNoEffect(ctx),
	})
	if err != nil {
		return 0, fmt.Errorf("put a request on record: %w", err)
	}
	return id, nil
}

// retainAtOnce is how many requests one statement removes.
const retainAtOnce = 10_000

// removeOldRecords removes records older than the audit retention.
func (r *Runner) removeOldRecords(ctx context.Context) error {
	for {
		n, err := r.q.EgressRequestsOld(ctx, r.cfg.Audit.Seconds(), retainAtOnce)
		if err != nil || n < retainAtOnce {
			return err
		}
	}
}
