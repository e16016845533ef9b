package httptool

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/parley-server/parley/internal/tool"
	"github.com/parley-server/parley/internal/tool/remote"
	"github.com/parley-server/parley/internal/tracing"
)

// MaxAnswer is the largest response, in bytes.
const MaxAnswer = 10 << 20

// maxAttempts is how many requests one call makes.
const maxAttempts = 2

// answer is the outcome of a request.
type answer struct {
	status int    // 0: there is no response
	kind   string // media type
	body   []byte
	why    string // the reason for a failure; "": the response is the result
	sent   bool   // the receiver may have acted
}

// Call implements tool.Tool.
func (t *httpTool) Call(ctx context.Context, call tool.Call) (tool.Result, error) {
	m, err := t.build(call.Input)
	if err != nil {
		return tool.Result{}, err
	}
	host, err := remote.HostOf(t.server.URL)
	if err != nil {
		return tool.Result{}, err
	}
	send, stands, err := t.env.Route(ctx, host, t.server.Secrets())
	if err != nil {
		return tool.Result{}, err
	}
	if t.request.Later && call.Await != nil {
		if err := call.Await(ctx); err != nil { // the receiver can be faster than the turn
			return tool.Result{}, err
		}
	}
	fixed := t.server.FillHeaders(func(name string) string { return stands[name] })
	for attempt := 1; ; attempt++ {
		a, err := t.attempt(ctx, call, m, fixed, send)
		if err != nil {
			return tool.Result{}, err
		}
		if a.isFinal() || attempt == maxAttempts || a.sent && !t.def.IsRepeatable() || !remote.AwaitRetry(ctx) {
			return t.finish(ctx, call, a)
		}
	}
}

// isFinal reports whether the receiver has decided: its response is the result, or it has rejected the
// call.
func (a answer) isFinal() bool { return a.why == "" || a.status != 0 && a.status < 500 }

// attempt makes one request. An error means that it was not sent, or that the call was canceled.
func (t *httpTool) attempt(whole context.Context, call tool.Call, m message, fixed map[string]string,
	send func(string, *http.Request) (*http.Response, error),
) (a answer, err error) {
	var sent atomic.Bool
	ctx, cancel := context.WithTimeoutCause(whole, t.timeout(), remote.ErrTime)
	defer cancel()
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteHeaders: func() { sent.Store(true) }})
	req, err := t.newRequest(ctx, call, m, fixed)
	if err != nil {
		return a, err
	}
	res, err := send(call.ID, req)
	if err == nil {
		defer res.Body.Close()
		a.status, a.kind = res.StatusCode, res.Header.Get("Content-Type")
		err = a.read(res)
	}
	a.sent = sent.Load()
	refused, isRefusal := errors.AsType[tool.Refusal](err)
	switch {
	case err == nil:
		a.why = t.reason(a)
	case whole.Err() != nil:
		return a, context.Cause(whole)
	case ctx.Err() != nil:
		a.status, a.why = 0, fmt.Sprintf("The tool %s gave no result within %d seconds.", t.def.Name, t.timeout()/time.Second)
	case isRefusal:
		a.status, a.why = 0, string(refused)
	default:
		return a, err
	}
	return a, nil
}

// read reads the body of a response that can be the result, or says why there is none.
func (a *answer) read(res *http.Response) (err error) {
	if a.status == http.StatusAccepted || a.status >= 300 && a.status < 400 {
		a.body, err = io.ReadAll(io.LimitReader(res.Body, remote.MaxReason))
		return err
	}
	if a.body, err = io.ReadAll(io.LimitReader(res.Body, MaxAnswer+1)); len(a.body) > MaxAnswer {
		return tool.Refusal(fmt.Sprintf("The answer of the tool is larger than %d MiB.", MaxAnswer>>20))
	}
	return err
}

// newRequest makes a signed request.
func (t *httpTool) newRequest(ctx context.Context, call tool.Call, m message, fixed map[string]string) (*http.Request, error) {
	var body io.Reader
	if m.body != nil {
		body = bytes.NewReader(m.body)
	}
	req, err := http.NewRequestWithContext(ctx, t.request.Method, m.address, body)
	if err != nil {
		return nil, tool.Refusal("The address of the request is not valid.")
	}
	req.Header.Set("Accept", "application/json, text/*;q=0.9, */*;q=0.5")
	if m.body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	tracing.Inject(ctx, req.Header)
	for name, value := range fixed {
		req.Header.Set(name, value)
	}
	if t.request.Later {
		req.Header.Set("Parley-Reply-Url", fmt.Sprintf("%s/api/v1/workspaces/%s/tool-calls/%s/result", t.sender.Base, call.Workspace,
			url.PathEscape(call.ID)))
	}
	if t.sender.Sign == nil {
		return req, nil
	}
	return req, t.sender.Sign(ctx, call.Workspace, req.Header, call.ID, m.body)
}

// reason returns why a response is not a result, "" if it is one.
func (t *httpTool) reason(a answer) string {
	if a.status < 300 {
		return ""
	}
	why := fmt.Sprintf("The tool %s answers HTTP %d %s.", t.def.Name, a.status, http.StatusText(a.status))
	switch {
	case a.status < 400:
		return why + " Redirects are not followed."
	case a.status == http.StatusUnauthorized, a.status == http.StatusForbidden:
		why += " An administrator can check the secret of the tool."
	}
	return why
}

// finish makes the result of a call.
func (t *httpTool) finish(ctx context.Context, call tool.Call, a answer) (tool.Result, error) {
	if a.why == "" {
		t.uses.Note(ctx, "")
		if a.status == http.StatusAccepted && t.request.Later {
			return tool.Result{}, tool.Later{}
		}
		out, err := t.content(ctx, call, a)
		return tool.Result{OK: true, Output: out}, err
	}
	if a.isServerFault() {
		t.uses.Note(ctx, a.why)
	} else {
		t.uses.Note(ctx, "")
	}
	why := a.why
	if a.sent && !a.isFinal() && !t.def.IsRepeatable() {
		why = remote.UnknownOutcome + why
	}
	if a.status >= 400 && isText(a) {
		out, err := t.content(ctx, call, a)
		return tool.Reject(why + "\n" + out), err
	}
	return tool.Reject(why), nil
}

// isServerFault reports whether an answer, or a missing one, is for an administrator. Other rejections
// are for the model, which chose the input.
func (a answer) isServerFault() bool {
	return a.status < 400 || a.status >= 500 || a.status == http.StatusUnauthorized || a.status == http.StatusForbidden
}
