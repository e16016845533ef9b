package egress

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
)

// Do sends a request with placeholders, under the same rules as those of programs. It follows no
// redirect. A refused request fails with *Error, one without a response with *Unanswered, and so
// does reading a truncated body. The caller closes the response's body.
func (r *Run) Do(req *http.Request) (*http.Response, error) {
	p, refused := r.planRequest(req)
	if refused != nil && req.Body != nil {
		req.Body.Close()
	}
	done, err := r.recordRequest(req.Context(), p.request)
	if err != nil {
		if refused == nil && p.body != nil {
			p.body.Close()
		}
		if e, ok := errors.AsType[*Error](err); ok {
			return nil, e
		}
		return nil, fmt.Errorf("record a request: %w", err)
	}
	if refused != nil {
		done(0, p.request.Decision)
		return nil, refused
	}
	res, err := r.sendPlan(req.Context(), p)
	if err != nil {
		done(0, decisionOf(err))
		return nil, err
	}
	res.Request = req // not the request that contains values
	done(res.StatusCode, Sent)
	return res, nil
}

// recordRequest records a request before it is sent.
func (r *Run) recordRequest(ctx context.Context, req Request) (done func(int, string), err error) {
	if r.cfg.Record != nil {
		done, err = r.cfg.Record(ctx, req)
	}
	if done == nil {
		done = func(int, string) {}
	}
	return done, err
}

// decisionOf returns the recorded decision for the end of a request.
func decisionOf(err error) string {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.decision
	}
	return Failed
}

// sendPlan inserts the values and makes the request.
func (r *Run) sendPlan(ctx context.Context, p *plan) (*http.Response, error) {
	ctx, cancel := context.WithTimeout(ctx, RequestTime)
	unlink := context.AfterFunc(r.ended, cancel)
	end := func() { unlink(); cancel() }
	out, err := p.fillRequest(ctx)
	if err != nil {
		end()
		return nil, err
	}
	res, err := r.transport.RoundTrip(out)
	if err != nil {
		err = failureOf(ctx, p.request.Host, err)
		end()
		return nil, err
	}
	res.Body = &unbroken{res.Body, ctx, p.request.Host}
	res, err = r.cleanResponse(res, p.used)
	if err != nil {
		end()
		return nil, err
	}
	res.Body = &ending{ReadCloser: res.Body, end: end}
	return res, nil
}

// ending calls end when a body is closed.
type ending struct {
	io.ReadCloser
	end  func()
	once sync.Once
}

func (e *ending) Close() error {
	err := e.ReadCloser.Close()
	e.once.Do(e.end)
	return err
}

// WriteTo makes redact pass marks separately to a redact.Marker.
func (e *ending) WriteTo(dst io.Writer) (int64, error) { return io.Copy(dst, e.ReadCloser) }

// unbroken makes reading a response's body fail with *Unanswered.
type unbroken struct {
	io.ReadCloser
	ctx  context.Context
	host string
}

func (u *unbroken) Read(p []byte) (int, error) {
	n, err := u.ReadCloser.Read(p)
	switch {
	case err == nil || err == io.EOF:
		return n, err
	case u.ctx.Err() != nil:
		return n, &Unanswered{u.host + " did not end its answer in time.", context.Cause(u.ctx)}
	}
	return n, &Unanswered{Reason: u.host + " broke off its answer."}
}

// Unanswered is the reason why an allowed request has no response, or a truncated one. It contains
// nothing of net/http's error, which may quote the server or addresses.
type Unanswered struct {
	Reason string // a sentence for the sender of the request
	cause  error  // cause of the context, if it ended
}

// Error implements error.
func (u *Unanswered) Error() string { return u.Reason }

// Unwrap returns the cause of the context's end, if it ended.
func (u *Unanswered) Unwrap() error { return u.cause }

func failureOf(ctx context.Context, host string, err error) error {
	if refused, ok := errors.AsType[*Error](err); ok {
		return refused
	}
	if ctx.Err() != nil {
		return &Unanswered{host + " did not answer in time.", context.Cause(ctx)}
	}
	return &Unanswered{Reason: host + " could not be reached: " + failureReason(err) + "."}
}
