package callback

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/parley-server/parley/db"
	"github.com/parley-server/parley/internal/crashpoint"
	"github.com/parley-server/parley/internal/egress"
	"github.com/parley-server/parley/internal/replan"
	"github.com/parley-server/parley/internal/tracing"
)

const (
	// patience is the time after which an attempt counts as lost.
	patience = time.Minute
	// crowdedPause is the minimum time that a delivery without a place waits.
	crowdedPause = time.Second
	// settleTime is the time limit for recording the outcome.
	settleTime = 5 * time.Second
	// maxAnswer is how many bytes of a response are read and discarded.
	maxAnswer = 4 << 10
)

// The status of a delivery.
const (
	pending   = "pending"
	delivered = "delivered"
	failed    = "failed"
)

// The outcomes of an attempt, in the terms of the public API.
const (
	addressRefused   = "address_refused" // the name does not exist, or has no public address
	connectionFailed = "connection_failed"
	tlsFailed        = "tls_failed"
	timedOut         = "timed_out"
	connectionLost   = "connection_lost"
	redirected       = "redirected"
	gone             = "gone"
	badStatus        = "bad_status"
)

// NotSent is the outcome of a report to a name below .invalid, which can never have a server. Such
// reports are made for `parley listen`.
const NotSent = "not_sent"

// Deliver makes one attempt at a delivery, for the job that has it. body returns the member data,
// or the whole body in another protocol; it is called once, and its result is sent every time. done
// reports that the job is finished; else the job runs again after retry. An error means that no
// attempt was made, or that its outcome is unknown.
func (s *Store) Deliver(ctx context.Context, delivery uuid.UUID, job int64, body func(context.Context, Delivery) ([]byte, error)) (
	retry time.Duration, done bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience*3/4)
	defer cancel()
	row, err := s.q.DeliveryTake(ctx, patience.Seconds(), delivery, job)
	if errors.Is(err, pgx.ErrNoRows) {
		return 0, true, nil // it is finished, or another job has it
	}
	if err != nil {
		return 0, false, fmt.Errorf("take delivery: %w", err)
	}
	if row.Disabled {
		if err := s.q.DeliveryStop(ctx, delivery); err != nil {
			return 0, false, fmt.Errorf("stop delivery: %w", err)
		}
		return 0, true, nil
	}
	release, ok := s.places.TryAcquire(row.WorkspaceID)
	if !ok {
		return crowdedPause + rand.N(crowdedPause), false, nil
	}
	defer release()
	if row.Body == nil {
		if row.Body, err = s.writeBody(ctx, row, body); err != nil {
			return 0, false, err
		}
	}
	secrets, err := s.openSecrets(ctx, row.WorkspaceID)
	if err != nil {
		return 0, false, err
	}
	auth, err := s.openAuth(row.WorkspaceID, row.TurnID, row.Name, row.Auth)
	if err != nil {
		return 0, false, err
	}
	if row.URL, err = s.openAddress(row.WorkspaceID, row.TurnID, row.Name, row.URL, row.Address); err != nil {
		return 0, false, err
	}
	began := time.Now()
	sending, span := tracing.Start(tracing.ContinueTurn(ctx, row.Traceparent, row.TurnID), "deliver callback", tracing.Client)
	out := s.attemptDelivery(sending, row, secrets, auth)
	out.endSpan(span, row)
	if out.err != "" && ctx.Err() != nil {
		return 0, false, ctx.Err() // this process stopped the attempt
	}
	out.took = time.Since(began)
	crashpoint.Hit("callback.after_response_before_mark")
	return s.recordOutcome(ctx, delivery, job, int(row.Tries), out)
}

// writeBody makes and stores the body of a delivery.
func (s *Store) writeBody(
	ctx context.Context, row db.DeliveryTakeRow, body func(context.Context, Delivery) ([]byte, error),
) ([]byte, error) {
	d := Delivery{ID: row.ID, Callback: row.CallbackID, Workspace: row.WorkspaceID, Session: row.SessionID, Turn: row.TurnID,
		Type: Type(row.Type), Seq: row.Seq, At: row.CreatedAt, Protocol: Protocol(row.Protocol)}
	whole, err := body(ctx, d)
	if err != nil {
		return nil, fmt.Errorf("make the data of a report: %w", err)
	}
	if d.Protocol == Parley {
		if whole, err = wrapBody(d, whole, row.Metadata); err != nil {
			return nil, err
		}
	}
	if whole, err = s.q.DeliveryBody(ctx, row.ID, whole); err != nil {
		return nil, fmt.Errorf("keep the body of a report: %w", err)
	}
	return whole, nil
}

// outcome is the outcome of an attempt.
type outcome struct {
	status int    // 0: no response
	err    string // "": delivered
	asked  time.Duration
	took   time.Duration
}

// endSpan ends the span of an attempt. The address is left out: it can hold a credential.
func (o outcome) endSpan(span *tracing.Span, row db.DeliveryTakeRow) {
	if span == nil {
		return
	}
	span.Set(slog.String("http.request.method", http.MethodPost), slog.String("parley.callback.type", row.Type),
		slog.String("parley.callback.id", row.CallbackID.String()),
		slog.String("parley.turn.id", row.TurnID.String()), slog.Int("http.request.resend_count", int(row.Tries)))
	if o.status != 0 {
		span.Set(slog.Int("http.response.status_code", o.status))
	}
	if o.err != "" {
		span.Fail(o.err)
	}
	span.End()
}

// isFinal reports whether another attempt would be pointless.
func (o outcome) isFinal() bool { return o.err == gone || o.err == NotSent }

// attemptDelivery sends a report.
func (s *Store) attemptDelivery(ctx context.Context, row db.DeliveryTakeRow, secrets [][]byte, auth Auth) outcome {
	if isReserved(row.URL) {
		return outcome{err: NotSent}
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, row.URL, bytes.NewReader(row.Body))
	if err != nil {
		return outcome{err: addressRefused}
	}
	tracing.Inject(ctx, r.Header)
	Sign(r.Header, secrets, row.ID.String(), time.Now(), row.Body)
	if Protocol(row.Protocol) == A2A10 {
		r.Header.Set("Content-Type", "application/a2a+json")
	}
	auth.addHeaders(r.Header)
	res, err := s.client.Do(r)
	if err != nil {
		return outcome{err: failureReason(err)}
	}
	defer res.Body.Close()
	_, _ = io.CopyN(io.Discard, res.Body, maxAnswer)
	o := outcome{status: res.StatusCode}
	switch {
	case o.status/100 == 2:
		return o
	case o.status == http.StatusGone:
		o.err = gone
	case o.status/100 == 3:
		o.err = redirected
	default:
		o.err = badStatus
	}
	o.asked = retryAfter(res.Header, time.Now())
	return o
}

// isReserved reports whether a URL's host is below .invalid.
func isReserved(raw string) bool {
	u, err := url.Parse(raw)
	return err == nil && strings.HasSuffix(strings.TrimSuffix(strings.ToLower(u.Hostname()), "."), ".invalid")
}

// recordOutcome records the outcome of an attempt. It changes nothing if the delivery was taken
// from the job meanwhile.
func (s *Store) recordOutcome(
	ctx context.Context, delivery uuid.UUID, job int64, try int, o outcome,
) (retry time.Duration, done bool, err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTime)
	defer cancel()
	status := delivered
	if o.err != "" {
		status = failed
		if again, ok := retryPause(try, o.asked); ok && !o.isFinal() {
			status, retry = pending, again
		}
	}
	err = replan.InTx(ctx, s.pool, func(tx pgx.Tx) error {
		q := s.q.WithTx(tx)
		n, err := q.DeliveryEnd(ctx, status, retry.Seconds(), delivery, job)
		if errors.Is(err, pgx.ErrNoRows) {
			status = failed
			return nil
		}
		if err != nil {
			return fmt.Errorf("end attempt: %w", err)
		}
		a := db.AttemptInsertParams{DeliveryID: delivery, N: n, LatencyMS: int32(o.took.Milliseconds())}
		if o.status != 0 {
			a.Status = new(int32(o.status))
		}
		if o.err != "" {
			a.Error = &o.err
		}
		if err := q.AttemptInsert(ctx, a); err != nil {
			return fmt.Errorf("insert attempt: %w", err)
		}
		if o.err == gone {
			if err := q.CallbackDisable(ctx, delivery); err != nil {
				return fmt.Errorf("disable callback: %w", err)
			}
		}
		return nil
	})
	return retry, status != pending, err
}

// failureReason names the failure of a request, without details about the network.
func failureReason(err error) string {
	if _, refused := errors.AsType[*egress.Error](err); refused {
		return addressRefused
	}
	if dns, ok := errors.AsType[*net.DNSError](err); ok && dns.IsNotFound {
		return addressRefused // else callers could find out which names exist in this network
	}
	if t, ok := errors.AsType[net.Error](err); ok && t.Timeout() || errors.Is(err, context.DeadlineExceeded) {
		return timedOut
	}
	_, certificate := errors.AsType[*tls.CertificateVerificationError](err)
	_, record := errors.AsType[tls.RecordHeaderError](err)
	_, alert := errors.AsType[tls.AlertError](err)
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "dial" {
		return connectionFailed
	} else if certificate || record || alert || ok && op.Op == "remote error" {
		return tlsFailed
	}
	return connectionLost
}
