package turn

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"time"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/logging"
	"github.com/parley-server/parley/internal/model"
	"github.com/parley-server/parley/internal/origin"
	"github.com/parley-server/parley/internal/session"
	"github.com/parley-server/parley/internal/tracing"
)

// contextOf returns a context whose log lines and spans belong to the request that sent a turn's
// message. The prompt of a skill is kept nowhere else, so the spans of its turn have no content.
func (s *Service) contextOf(ctx context.Context, t session.Turn) context.Context {
	o := origin.Of(t.Origin)
	ctx = logging.WithRequestID(ctx, o.RequestID)
	if s.cfg.Tracer == nil {
		return ctx
	}
	ctx = tracing.ContinueTurn(s.cfg.Tracer.Attach(ctx), o.Traceparent, t.ID)
	if t.Prompt != nil {
		ctx = tracing.WithoutContent(ctx)
	}
	return ctx
}

// traceTurn records the span of a turn that has ended.
func (s *Service) traceTurn(ctx context.Context, e session.Finished, took time.Duration) {
	if s.cfg.Tracer == nil {
		return
	}
	t := e.Turn
	name := "invoke_agent"
	if t.Agent != "" {
		name += " " + t.Agent
	}
	span := tracing.StartTurn(ctx, origin.Of(t.Origin).Traceparent, t.ID, name, time.Now().Add(-took))
	if span == nil {
		return
	}
	span.Set(slog.String("gen_ai.operation.name", "invoke_agent"), slog.String("gen_ai.agent.name", t.Agent),
		slog.String("gen_ai.conversation.id", t.SessionID.String()), slog.String("parley.turn.id", t.ID.String()),
		slog.String("parley.workspace.id", t.WorkspaceID.String()), slog.String("parley.turn.state", string(e.State)),
		slog.Int("parley.turn.attempts", e.Attempts), slog.Int("parley.turn.model_calls", e.Steps), slog.Int("parley.turn.tool_calls", e.Tools))
	if first, ok := s.firstText(t); ok {
		span.Set(slog.Duration("parley.turn.time_to_first_text", first))
	}
	if u := e.Usage; u != nil {
		setModel(span, u.Model)
		setUsage(span, model.Usage{InputTokens: u.InputTokens, CachedTokens: u.CachedInputTokens, CacheWriteTokens: u.CacheWriteTokens,
			OutputTokens: u.OutputTokens})
		if u.CostUSD != nil {
			span.Set(slog.Float64("parley.cost_usd", *u.CostUSD))
		}
	}
	if e.Error != "" {
		span.Fail(string(e.Error))
	}
	span.End()
}

// traceWait records the wait that an answer has just ended: in the log, the answer precedes the event
// with which this attempt began.
func (s *Service) traceWait(ctx context.Context, log []event.Event) {
	if s.cfg.Tracer == nil || len(log) < 2 || log[len(log)-1].Kind != event.KindStarted || log[len(log)-2].Kind != event.KindDecision {
		return
	}
	answer := log[len(log)-2]
	body, err := answer.Body()
	decision, ok := body.(event.Decision)
	if err != nil || !ok {
		return
	}
	for i := len(log) - 3; i >= 0; i-- {
		body, err := log[i].Body()
		question, ok := body.(event.Question)
		if err != nil || !ok {
			continue
		}
		local := -s.cfg.Pulse.Offset() // to the clock of the other spans
		span := tracing.StartAt(ctx, "wait "+string(decision.What), log[i].At.Add(local))
		id, _ := question.Wait()
		span.Set(slog.String("parley.wait.kind", string(decision.What)), slog.String("parley.wait.outcome", string(decision.Outcome)),
			slog.String("parley.approval.id", id.String()))
		span.EndAt(answer.At.Add(local))
		return
	}
}

// chat is the span of a model call. A nil chat records nothing.
type chat struct {
	span   *tracing.Span
	redact func(string) string
	began  time.Time
	spoke  bool
	last   model.Chunk
	failed *model.Error
	text   strings.Builder  // if the span has content
	calls  []event.ToolCall // likewise
}

// startChat begins the span of a model call, with its input if the span has content.
func (m sharedModel) startChat(ctx context.Context, req model.Request) (context.Context, *chat) {
	_, short, _ := strings.Cut(m.Name(), "/")
	ctx, span := tracing.Start(ctx, "chat "+short, tracing.Client)
	if span == nil {
		return ctx, nil
	}
	c := &chat{span: span, redact: m.attempt.run.Redact, began: time.Now()}
	setModel(span, m.Name())
	span.Set(slog.String("gen_ai.operation.name", "chat"), slog.String("gen_ai.conversation.id", req.CacheKey),
		slog.Bool("gen_ai.request.stream", true))
	if n := req.MaxTokens; n > 0 {
		span.Set(slog.Int("gen_ai.request.max_tokens", n))
	}
	if t := req.Options.Temperature; t != nil {
		span.Set(slog.Float64("gen_ai.request.temperature", *t))
	}
	if p := req.Options.TopP; p != nil {
		span.Set(slog.Float64("gen_ai.request.top_p", *p))
	}
	if req.Output != nil {
		span.Set(slog.String("gen_ai.output.type", "json"))
	}
	if span.HasContent() {
		span.Set(slog.String("gen_ai.system_instructions", c.encode([]part{{Type: "text", Content: req.System}})),
			slog.String("gen_ai.input.messages", c.encode(inputMessages(req.Messages))))
	}
	return ctx, c
}

// note records a chunk of the reply, or the error in its place.
func (c *chat) note(chunk model.Chunk, err error) {
	if c == nil {
		return
	}
	if err != nil {
		c.failed, _ = errors.AsType[*model.Error](err)
		return
	}
	if !c.spoke {
		c.spoke = true
		c.span.Set(slog.Duration("gen_ai.response.time_to_first_chunk", time.Since(c.began)))
	}
	if chunk.Stop != "" {
		c.last = chunk
	}
	if c.span.HasContent() {
		c.text.WriteString(chunk.Text)
		if chunk.Call != nil {
			c.calls = append(c.calls, *chunk.Call)
		}
	}
}

// end ends the span. outcome is that of the metrics.
func (c *chat) end(outcome string) {
	if c == nil {
		return
	}
	id := c.last.RequestID
	if f := c.failed; f != nil {
		id = f.RequestID
		if f.Status != 0 {
			c.span.Set(slog.Int("http.response.status_code", f.Status))
		}
	}
	if outcome != "ok" {
		if f := c.failed; f != nil && outcome != "canceled" {
			outcome = string(f.Code)
		}
		c.span.Fail(outcome)
	}
	c.span.Set(slog.String("parley.provider.request_id", id), slog.String("gen_ai.response.model", c.last.Model))
	if u := c.last.Usage; u != nil {
		setUsage(c.span, *u)
	}
	reason, ended := finishReasons[c.last.Stop]
	if ended {
		c.span.Set(slog.Any("gen_ai.response.finish_reasons", []string{reason}))
	}
	if c.span.HasContent() {
		c.span.Set(slog.String("gen_ai.output.messages", c.encode([]message{outputMessage(c.text.String(), c.calls, reason)})))
	}
	c.span.End()
}

// finishReasons are the conventions' names for the ends of a reply.
var finishReasons = map[model.Stop]string{
	model.StopEnd: "stop", model.StopTools: "tool_call", model.StopLength: "length", model.StopRefused: "content_filter",
}

// setModel sets the provider and the model of a full name.
func setModel(span *tracing.Span, full string) {
	provider, short, _ := strings.Cut(full, "/")
	span.Set(slog.String("gen_ai.provider.name", provider), slog.String("gen_ai.request.model", short))
}

func setUsage(span *tracing.Span, u model.Usage) {
	span.Set(slog.Int64("gen_ai.usage.input_tokens", u.InputTokens), slog.Int64("gen_ai.usage.output_tokens", u.OutputTokens),
		slog.Int64("gen_ai.usage.cache_read.input_tokens", u.CachedTokens), slog.Int64("gen_ai.usage.cache_creation.input_tokens",
			u.CacheWriteTokens))
}
