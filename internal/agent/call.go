package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"strings"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/model"
	"github.com/parley-server/parley/internal/text"
	"github.com/parley-server/parley/internal/text/render"
	"github.com/parley-server/parley/internal/tool"
	"github.com/parley-server/parley/internal/tracing"
)

const maxSummary = 120 // characters of a summary made from the input

// interrupted is the result of a call that a crash interrupted, or that lost the response to its
// commit.
const interrupted = "interrupted, outcome unknown"

// runCalls runs the calls of a step that have no result yet. The calls of the caller's own tools
// come last, so that the caller is asked once for all of them.
func (r *run) runCalls(ctx context.Context, s *step) error {
	if err := r.askApproval(ctx, s); err != nil {
		return err
	}
	var own []event.ToolCall
	for _, c := range s.reply.Calls {
		if _, done := s.results[c.ID]; done {
			continue
		}
		if c.Tool == finalAnswer && r.Output != nil { // the request contains its result
			continue
		}
		t := r.findTool(c.Tool)
		if t != nil && t.Spec().Caller {
			own = append(own, c)
			continue
		}
		if err := r.runCall(ctx, s, t, c); err != nil {
			return err
		}
	}
	return r.requireResults(ctx, s, own)
}

// runCall runs a call, or ends it with the result that it has had so far.
func (r *run) runCall(ctx context.Context, s *step, t tool.Tool, c event.ToolCall) error {
	asks := c.Tool == requestSecret && r.Secrets != nil
	if s.begun[c.ID] && !asks {
		if res := r.state.postedResult(c); res != nil {
			return r.emitResult(ctx, s, c, *res)
		}
		if t == nil || !t.Spec().Idempotent {
			return r.emitResult(ctx, s, c, tool.Reject(interrupted))
		}
	}
	j, err := r.refuseCall(ctx, t, c)
	if err != nil {
		return err
	}
	if err := r.beginCall(s, t, c, j.verdict); err != nil {
		return err
	}
	if j.refusal != nil {
		return r.emitResult(ctx, s, c, *j.refusal)
	}
	res, err := r.performCall(ctx, t, c)
	if needs, ok := errors.AsType[tool.Connect](err); ok {
		return r.requireConnection(ctx, s, c, needs)
	}
	if _, later := errors.AsType[tool.Later](err); later {
		return r.parkRun(event.ToolLater{Calls: []event.PendingCall{pendingCall(c)}})
	}
	if err != nil {
		return err
	}
	return r.emitResult(ctx, s, c, res)
}

// beginCall records the beginning of a call, once, with the decision about it.
func (r *run) beginCall(s *step, t tool.Tool, c event.ToolCall, v *event.ToolVerdict) error {
	var bodies []event.Body
	if v != nil {
		bodies = append(bodies, *v)
	}
	_, shown := r.state.connects[c.ID]
	switch {
	case s.begun[c.ID]: // an attempt before has recorded it
		return nil
	case shown:
		bodies = append(bodies, event.ToolAgain{ToolUseID: c.ID})
	default:
		bodies = append(bodies, event.ToolUse{Tool: c.Tool, Summary: summarizeCall(t, c), ToolUseID: c.ID})
	}
	if err := r.emitEvents(bodies...); err != nil {
		return err
	}
	s.beginCall(c.ID)
	return nil
}

// performCall runs a call that is permitted.
func (r *run) performCall(ctx context.Context, t tool.Tool, c event.ToolCall) (tool.Result, error) {
	ctx, span := tracing.Start(ctx, "execute_tool "+c.Tool, tracing.Internal)
	call := r.callTool
	if r.requestsSecret(c) {
		call = func(ctx context.Context, _ tool.Tool, c event.ToolCall) (tool.Result, error) {
			return r.secretResult(ctx, c)
		}
	}
	res, err := call(ctx, t, c)
	if span != nil {
		r.endSpan(span, c, res, err)
	}
	return res, err
}

// endSpan ends the span of a call.
func (r *run) endSpan(span *tracing.Span, c event.ToolCall, res tool.Result, err error) {
	_, later := errors.AsType[tool.Later](err)
	_, unconnected := errors.AsType[tool.Connect](err)
	outcome := "ok"
	switch {
	case later:
		outcome = "accepted"
	case unconnected:
		outcome = "not_connected"
	case r.stopped: // a question
		outcome = "waiting"
	case err != nil:
		outcome = "interrupted"
		span.Fail(outcome)
	case !res.OK:
		outcome = "failed"
		span.Fail("tool_error")
	}
	span.Set(slog.String("gen_ai.operation.name", "execute_tool"), slog.String("gen_ai.tool.name", c.Tool),
		slog.String("gen_ai.tool.call.id", c.ID),
		slog.String("gen_ai.tool.type", "function"), slog.String("gen_ai.conversation.id", r.c.Session.String()),
		slog.String("parley.tool.outcome", outcome))
	if span.HasContent() {
		span.Set(slog.String("gen_ai.tool.call.arguments", limitOutput(r.redactSecrets(string(c.Input)))),
			slog.String("gen_ai.tool.call.result", limitOutput(r.redactSecrets(res.Output))))
	}
	span.End()
}

// requestsSecret reports whether a call asks a user for a credential.
func (r *run) requestsSecret(c event.ToolCall) bool {
	_, bad := model.Malformed(c.Input)
	return !bad && c.Tool == requestSecret && r.Secrets != nil
}

// refuseCall decides whether a call can and may run.
func (r *run) refuseCall(ctx context.Context, t tool.Tool, c event.ToolCall) (judgment, error) {
	if r.requestsSecret(c) {
		return judgment{}, nil
	}
	if _, bad := model.Malformed(c.Input); bad {
		return refuse("The arguments were not a JSON object in which each name appears once. Call the tool again with one."), nil
	}
	switch {
	case t == nil:
		return refuse(fmt.Sprintf("Unknown tool %q. Use one of: %s.", c.Tool, strings.Join(r.toolNames(), ", "))), nil
	case t.Spec().Unavailable != "":
		return r.refuseUnavailable(ctx, t, c)
	}
	if wrong := tool.WrongInput(t, c.Input); wrong != "" {
		return refuse(wrong), nil
	}
	return r.judgeCall(ctx, c)
}

// emitResult emits the outcome of a call. tool_result comes last: once it is stored, so is the
// rest.
func (r *run) emitResult(ctx context.Context, s *step, c event.ToolCall, res tool.Result) error {
	var bodies []event.Body
	for _, ref := range res.References {
		bodies = append(bodies, ref)
	}
	output := event.Plain(res.Output)
	shown, truncated := event.CutOutput(output)
	if truncated || len(output) > tool.MaxOutput {
		whole, err := r.shortenOutput(ctx, c, output)
		if err != nil {
			return err
		}
		bodies = append(bodies, whole)
		s.addOutput(whole)
	}
	last := event.ToolResult{Tool: c.Tool, OK: res.OK, Output: shown, Truncated: truncated, ToolUseID: c.ID}
	s.finishCall(last)
	return r.emitEvents(append(bodies, last)...)
}

// callTool runs a tool. Its own failures become a result; only the end of ctx is an error.
func (r *run) callTool(ctx context.Context, t tool.Tool, c event.ToolCall) (res tool.Result, err error) {
	defer func() {
		if p := recover(); p != nil {
			r.Log.ErrorContext(ctx, "tool panicked", "tool", c.Tool,
				"panic", r.redactSecrets(fmt.Sprint(p)), "stack", r.redactSecrets(string(debug.Stack())))
			res, err = tool.Reject("The tool failed."), nil
		}
	}()
	res, err = t.Call(ctx, r.toolCall(c))
	if err != nil && ctx.Err() != nil {
		return res, context.Cause(ctx)
	}
	if _, later := errors.AsType[tool.Later](err); later {
		return res, err
	}
	if _, unconnected := errors.AsType[tool.Connect](err); unconnected {
		return res, err
	}
	if refusal, ok := errors.AsType[tool.Refusal](err); ok {
		return tool.Reject(string(refusal)), nil
	}
	if err != nil {
		r.Log.ErrorContext(ctx, "a tool failed", "tool", c.Tool, "err", err)
		if r.Unconfirmed != nil && r.Unconfirmed(err) {
			return tool.Reject(interrupted), nil
		}
		return tool.Reject("The tool failed."), nil
	}
	return res, nil
}

func (r *run) toolCall(c event.ToolCall) tool.Call {
	return tool.Call{ID: c.ID, Tool: c.Tool, Workspace: r.c.Workspace, Session: r.c.Session, Turn: r.c.Turn, Input: c.Input,
		Await: r.awaitOf(c)}
}

func (r *run) redactSecrets(s string) string {
	if r.Redact == nil {
		return s
	}
	return r.Redact(s)
}

func (r *run) findTool(name string) tool.Tool {
	if name == readResult {
		return resultReader{r}
	}
	for _, t := range r.Tools {
		if t.Spec().Name == name {
			return t
		}
	}
	return nil
}

func (r *run) toolNames() []string {
	specs := r.toolSpecs()
	names := make([]string, len(specs))
	for i, t := range specs {
		names[i] = t.Name
	}
	return names
}

// summarizeCall describes in one line what a call would do.
func summarizeCall(t tool.Tool, c event.ToolCall) string {
	if c.Tool == requestSecret {
		return "ask for a credential"
	}
	if s, ok := t.(tool.Summarizer); ok {
		return event.Plain(s.Summary(c.Input))
	}
	var b bytes.Buffer
	if json.Compact(&b, c.Input) != nil {
		return render.Argument(c.Tool, maxSummary)
	}
	return render.Argument(c.Tool, maxSummary) + " " + render.Exact(text.Truncate(event.Plain(b.String()), maxSummary))
}
