package mcptool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/parley-server/parley/internal/tool"
	"github.com/parley-server/parley/internal/tool/remote"
	"github.com/parley-server/parley/internal/tracing"
)

// useID is the member of a call's _meta with its tool_use_id, so that a server can recognize a
// repetition.
const useID = "parley/tool-use-id"

// cancelTime is how long a call waits until the server has been sent its cancellation.
const cancelTime = time.Second

// Call implements tool.Tool.
func (t serverTool) Call(ctx context.Context, call tool.Call) (tool.Result, error) {
	whole := ctx
	ctx, cancel := context.WithTimeoutCause(ctx, t.peer.server.Timeout, remote.ErrTime)
	defer cancel()
	renewed := false // the call has had another token than the first
	for attempt := 1; ; attempt++ {
		res, sent, err := t.attempt(ctx, call)
		if err == nil {
			t.peer.uses.Note(ctx, "")
			return t.result(whole, call, res)
		}
		if ctx.Err() != nil {
			return t.interrupt(whole, sent)
		}
		if errors.Is(err, ErrNotConnected) {
			return tool.Result{}, t.peer.connect(nil)
		}
		if errors.Is(err, errChanged) {
			return tool.Reject(fmt.Sprintf("The tool server %s has changed the definition of %s, or does not offer it. An "+
				"administrator must accept a change first.",
				t.peer.server.Name, t.def.Name)), nil
		}
		if errors.Is(err, errNotCompared) {
			return tool.Reject(fmt.Sprintf("The tools of the server %s could not be compared with those that were accepted, "+
				"so the call was not made. Try again later.", t.peer.server.Name)), nil
		}
		if t.peer.link == nil { // a refusal, or no database
			return tool.Result{}, err
		}
		if t.peer.rejectToken() { // the server has not made the call
			if renewed {
				return tool.Result{}, t.peer.connect(nil)
			}
			renewed = true
			attempt--
			continue
		}
		if scopes := t.peer.lackedScopes(); scopes != nil { // the same
			return tool.Result{}, t.peer.connect(scopes)
		}
		why, rejected := t.peer.explain(err)
		gone := errors.Is(err, mcp.ErrSessionMissing)
		if gone || !rejected {
			t.peer.drop()
		}
		if attempt == 1 && (gone || !rejected && (!sent || t.def.IsRepeatable())) && remote.AwaitRetry(ctx) {
			continue
		}
		t.peer.uses.Note(whole, why)
		if sent && !rejected && !t.def.IsRepeatable() {
			why = remote.UnknownOutcome + why
		}
		return tool.Reject(why), nil
	}
}

// attempt makes one call. sent reports whether the server may have received it.
func (t serverTool) attempt(ctx context.Context, call tool.Call) (res *mcp.CallToolResult, sent bool, err error) {
	if err := t.peer.open(ctx, call.ID); err != nil {
		return nil, false, err
	}
	if err := t.peer.refresh(ctx); err != nil {
		return nil, false, err
	}
	if !t.peer.isUsable(t.def.Name) {
		return nil, false, errChanged
	}
	t.peer.link.beginCall(call.ID)
	ctx, cancel := context.WithCancel(ctx) // ends a stream that goes on after the result
	defer cancel()
	res, err = t.peer.session.CallTool(ctx, &mcp.CallToolParams{Name: t.def.OwnName, Arguments: json.RawMessage(call.Input),
		Meta: metaOf(ctx, call)})
	if err == nil && res.NeedsInput() {
		return nil, true, &jsonrpc.Error{Message: "It asks for further input, which tool servers do not get here."}
	}
	return res, true, err
}

// metaOf returns the _meta of a call: its id, and its place in the trace, as MCP names it.
func metaOf(ctx context.Context, call tool.Call) mcp.Meta {
	meta := mcp.Meta{useID: call.ID}
	if place := tracing.Traceparent(ctx); place != "" {
		meta["traceparent"] = place
	}
	return meta
}

var (
	errChanged     = errors.New("the definition of the tool has changed")
	errNotCompared = errors.New("the definitions could not be compared")
)

// interrupt returns the result of a call whose time is over, or that was canceled.
func (t serverTool) interrupt(ctx context.Context, sent bool) (tool.Result, error) {
	if sent {
		t.peer.awaitCancellation()
	} else {
		t.peer.drop()
	}
	if ctx.Err() != nil {
		return tool.Result{}, context.Cause(ctx)
	}
	why := fmt.Sprintf("The tool server %s gave no result within %d seconds.", t.peer.server.Name, t.peer.server.Timeout/time.Second)
	t.peer.uses.Note(ctx, why)
	if sent && !t.def.IsRepeatable() {
		why = remote.UnknownOutcome + why
	}
	return tool.Reject(why), nil
}

// awaitCancellation waits until the server has been sent the cancellation of the call, which the
// client sends beside it.
func (p *peer) awaitCancellation() {
	p.link.mu.Lock()
	canceled := p.link.canceled
	p.link.mu.Unlock()
	late := time.NewTimer(cancelTime)
	defer late.Stop()
	select {
	case <-canceled:
	case <-late.C:
		p.drop()
	}
}
