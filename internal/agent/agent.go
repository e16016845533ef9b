// Package agent takes a model and tools through one turn. It uses neither database nor network: it
// reads the turn's log and yields the next events.
//
// Events are committed before the agent continues, so the log is a journal: a tool call is stored
// before the tool runs, its result before the model reads it. A turn that stopped at any point is
// continued by running the agent on its log again.
package agent

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/model"
	"github.com/parley-server/parley/internal/tool"
)

// Agent is a model with its tools.
type Agent struct {
	Model        model.Model
	Fallbacks    []model.Model // answer in place of Model if it fails, in this order
	Tools        []tool.Tool
	Instructions string
	Effort       string         // of the model: minimal, low, medium or high; "": the model's own
	Summaries    bool           // summaries of the model's reasoning are requested and emitted
	MaxTurns     int            // model calls in one turn; at least 1
	Catalog      *model.Catalog // prices of models; nil: those of this release
	Window       int            // tokens that a request may have; 0: what Catalog says
	MaxCostUSD   *float64       // limit for one turn; needs a model with a known price; nil: no limit
	// Afford checks the budgets of the day before each step, for the model of the step; nil: none.
	Afford     func(ctx context.Context, model string) error
	Permit     Permit        // which calls may run; nil: all
	MayConnect bool          // the sender may connect the workspace to a tool server
	Secrets    Secrets       // which credentials request_secret may request; nil: the tool is not offered
	Output     *Output       // the final answer must fit it; nil: any text is an answer
	Options    model.Options // parameters that the caller chose
	MustCall   bool          // every reply must call a tool
	OneCall    bool          // at most one call of the caller's own tools at a time
	Log        *slog.Logger
	// Unconfirmed reports whether a tool's failure leaves the effect of the call unknown; nil: it
	// never does.
	Unconfirmed func(error) bool
	Redact      func(string) string // removes secrets from the text of a panic; nil: none to remove
	// Seal and Open encrypt the reasoning of a reply in the log; nil: reasoning is not kept.
	Seal, Open func([]byte) ([]byte, error)
	// Version is recorded in each reply; nil: none.
	Version *event.AgentVersion
	// KeepSetup stores the setup of the turn's requests under its digest; nil: it is not stored.
	KeepSetup func(ctx context.Context, digest string, s Setup) error
	// EndUnanswered ends the turn if calls of the caller's own tools got no result in time.
	EndUnanswered bool
	// Await lets the result of a call be posted; nil: only while the turn waits for it.
	Await func(ctx context.Context, toolUseID string) error
	// FindResult returns the complete result of a call of the session that a summary covers; nil: none.
	FindResult func(ctx context.Context, toolUseID string) (output event.ToolOutput, ok bool, err error)
	// KeepResult writes a long result into a file of the session's folder, and returns its path. A
	// tool.Refusal is the reason why it cannot. nil: the agent has no folder.
	KeepResult func(ctx context.Context, call tool.Call, output string) (file string, err error)
	// ReadResult reads such a file; nil: none can be read.
	ReadResult func(ctx context.Context, file string) (output string, err error)

	ended atomic.Pointer[string] // id of the newest response that is known to have ended at its provider
}

// Conversation is the input of a turn.
type Conversation struct {
	Workspace uuid.UUID
	Session   uuid.UUID
	Turn      uuid.UUID
	Prompt    string        // the model's input in place of the user's message; "": the message itself
	Files     []string      // attached texts, each with its name
	Images    []model.Image // likewise
	Documents []model.File  // likewise; Files names them
	History   []Past        // earlier turns, oldest first
	Budget    int           // maximum number of tokens of earlier turns for the model; negative: as many as fit its window
	Log       []event.Event // this turn's rows so far, without text deltas
	Shown     bool          // text was shown up to the last whole reply in Log
	Tail      string        // text that was shown after it
	Reasoning string        // reasoning that was shown after it
}

// Failure ends a turn with an error event.
type Failure struct {
	Code    event.Code
	Message string
	Final   bool // sending the message again cannot help, although it can for others with this code
	tooLong bool // the request is longer than the model's context
}

func (f *Failure) Error() string { return string(f.Code) + ": " + f.Message }

// Run yields groups of events to be committed together, in order. It ends when the answer is
// complete, or with an error: a *Failure, or the cause of ctx's end.
//
// Two are always alone in their group and last. An event.Question: the turn waits; run the agent
// again when the log has the event.Decision. event.Structured: the answer, which follows all
// other events of the turn.
func (a *Agent) Run(ctx context.Context, c Conversation) iter.Seq2[[]event.Body, error] {
	return func(yield func([]event.Body, error) bool) {
		r := &run{Agent: a, c: c, yield: yield}
		if err := r.work(ctx); err != nil && !r.stopped {
			yield(nil, err)
		}
	}
}

// errStopped unwinds a run after its consumer has stopped. Callers may replace it with another
// error: only run.stopped decides whether the run may still yield.
var errStopped = errors.New("the consumer stopped")

// run is one pass of Run.
type run struct {
	*Agent
	c     Conversation
	yield func([]event.Body, error) bool
	state state
	past  []unit        // the conversation before the user's message
	model model.Model   // of the next step
	rest  []model.Model // fallbacks that were not tried
	shown bool          // text of this turn, of any step

	lastSent   *event.Sent // the newest request of the earlier turns; nil: none
	compaction *compaction // stands for the oldest units; nil: none
	limit      int         // tokens of a request that the model has rejected as too long; 0: none
	rejected   *rejection  // of the step's request; nil: none
	hidden     bool        // the model's text is not a part of the answer
	thought    int         // bytes of reasoning that were shown after the last whole reply
	partial    string      // the beginning of the newest reply that its request contained
	setup      string      // digest of the setup; "": not kept yet
	fixed      int         // estimated tokens of a request without its messages
	specs      []tool.Spec // of the agent's tools; use sortedSpecs

	stopped bool // the consumer broke the loop; yielding again would panic
}

// emitEvents passes events to the consumer, which commits them.
func (r *run) emitEvents(bodies ...event.Body) error {
	if !r.stopped && r.yield(bodies, nil) {
		return nil
	}
	r.stopped = true
	return errStopped
}

func (r *run) work(ctx context.Context) error {
	var err error
	if r.state, err = rebuildState(r.c.Log); err != nil {
		return err
	}
	r.thought = len(r.c.Reasoning)
	r.chooseModel()
	r.fixed = r.fixedTokens()
	r.limit = r.state.learnedWindow()
	if r.past, err = r.pastUnits(); err != nil {
		return err
	}
	partial := r.c.Tail
	if r.shown = r.c.Shown || partial != ""; r.c.Shown {
		partial = strings.TrimPrefix(partial, event.StepBreak)
	}
	for settled := 0; ; {
		for ; settled < len(r.state.steps); settled++ {
			if err := r.runCalls(ctx, r.state.steps[settled]); err != nil {
				return err
			}
			r.state.steps[settled].reasoning = r.openReasoning(ctx, r.state.steps[settled].reply)
		}
		if done, err := r.finishAnswer(); err != nil || done {
			return err
		}
		if err := r.checkBudget(ctx); err != nil {
			return err
		}
		if err := r.keepSetup(ctx); err != nil {
			return err
		}
		req, sent := r.request(settled)
		if done, err := r.compact(ctx, settled, sent); err != nil {
			return err
		} else if done {
			continue
		}
		req.Partial = partial
		reply, err := r.requestReply(ctx, settled, req, sent)
		if errors.Is(err, errTooLong) {
			continue
		}
		if err != nil {
			return err
		}
		partial, r.thought = "", 0
		if err := r.emitEvents(reply); err != nil {
			return err
		}
		if len(reply.Calls) > 0 || r.Output != nil { // else it is the answer, which no request follows
			if reply, err = storedBody(reply); err != nil {
				return err
			}
		}
		r.state.steps = append(r.state.steps, &step{reply: reply})
	}
}

// keepSetup stores the setup, once in a run, before a reply refers to it.
func (r *run) keepSetup(ctx context.Context) error {
	if r.KeepSetup == nil || r.setup != "" {
		return nil
	}
	s := r.takeSetup()
	digest := s.Digest()
	if err := r.KeepSetup(ctx, digest, s); err != nil {
		return err
	}
	r.setup = digest
	return nil
}

// rejection is a request that was too long for the model.
type rejection struct {
	estimate int64
	failure  *Failure
}

// errTooLong reports that a request was rejected, and that a shorter one can be tried.
var errTooLong = errors.New("the request is too long")

// requestReply requests the reply of the step after the first n. The size of a request that is too
// long for the model counts as its window from then on.
func (r *run) requestReply(ctx context.Context, n int, req model.Request, sent event.Sent) (event.Reply, error) {
	if r.rejected != nil && sent.Estimate >= r.rejected.estimate {
		return event.Reply{}, r.rejected.failure
	}
	reply, err := r.generateReply(ctx, req)
	if f, ok := errors.AsType[*Failure](err); ok && f.tooLong {
		r.rejected = &rejection{sent.Estimate, f}
		r.limit = min(r.window(), int(r.scaleBefore(n).apply(int(sent.Estimate))))
		return reply, errTooLong
	}
	if err != nil {
		return reply, err
	}
	r.rejected = nil
	sent.Tokens, sent.Setup = reply.Usage.InputTokens, r.setup
	sent.FileText = slices.ContainsFunc(r.c.Documents, func(f model.File) bool { return f.Text != "" })
	req.Partial, sent.Partial = r.partial, len(r.partial)
	reply.Sent, reply.AgentVersion = &sent, r.Version
	reply.PromptSHA256 = r.digestRequest(r.model.Name(), req)
	return reply, nil
}

// storedBody returns an event as it is read from the log: its JSON may differ from the model's. The
// next request must not depend on whether the turn was interrupted.
func storedBody[B event.Body](b B) (B, error) {
	data, err := event.Encode(b)
	if err != nil {
		return b, err
	}
	stored, err := event.Decode(b.Kind(), data)
	if err != nil {
		return b, err
	}
	return stored.(B), nil
}

// checkBudget fails if the turn, or its workspace, key or user today, has used up its limits.
func (r *run) checkBudget(ctx context.Context) error {
	if len(r.state.steps) >= r.MaxTurns {
		return &Failure{Code: event.MaxTurnsExceeded, Message: fmt.Sprintf("The turn used its %d model calls without an answer.", r.MaxTurns)}
	}
	return r.checkCost(ctx, r.model.Name())
}

// checkCost fails if a step of a model would exceed the limits, or if its cost cannot be limited.
func (r *run) checkCost(ctx context.Context, name string) error {
	if r.Afford != nil {
		if err := r.Afford(ctx, name); err != nil {
			return err
		}
	}
	if r.MaxCostUSD == nil {
		return nil
	}
	if _, known := r.Catalog.Price(name); !known {
		return &Failure{Code: event.BudgetExceeded, Message: UnknownPrice(name, "the turn")}
	}
	spent := 0.0
	for _, used := range r.state.usages() {
		if c := used.CostUSD; c != nil {
			spent += *c
		}
	}
	if spent >= *r.MaxCostUSD {
		return &Failure{Code: event.BudgetExceeded, Message: fmt.Sprintf("The turn reached its limit of $%.4f: it has cost $%.4f.",
			*r.MaxCostUSD, spent)}
	}
	return nil
}

// UnknownPrice explains why a limit in US dollars cannot be kept, and the remedies.
func UnknownPrice(name, whose string) string {
	return fmt.Sprintf("The price of the model %s is not known, so the limit of %s in US dollars cannot be kept. "+
		"An administrator can add the price to the file of PARLEY_PRICES, choose a model with a price, or remove the limit.", name, whose)
}

// toolSpecs returns the tools as the model sees them: by their names, those of the caller after the
// others. A stable order lets providers cache the beginning of the request.
func (r *run) toolSpecs() []model.Tool {
	specs := make([]model.Tool, 0, len(r.Tools)+2)
	for _, s := range r.sortedSpecs() {
		if s.Unavailable == "" {
			specs = append(specs, model.Tool{Name: s.Name, Description: s.Description, Schema: s.Schema})
		}
	}
	if r.Secrets != nil {
		specs = append(specs, secretTool)
	}
	if r.Output != nil {
		specs = append(specs, model.Tool{Name: finalAnswer, Description: strings.TrimSpace(finalDescription + " " + r.Output.Description),
			Schema: r.Output.Schema})
	}
	return specs
}

func (r *run) sortedSpecs() []tool.Spec {
	if r.specs != nil {
		return r.specs
	}
	r.specs = make([]tool.Spec, len(r.Tools))
	for i, t := range r.Tools {
		r.specs[i] = t.Spec()
	}
	slices.SortStableFunc(r.specs, func(a, b tool.Spec) int {
		switch {
		case a.Caller != b.Caller && a.Caller:
			return 1
		case a.Caller != b.Caller:
			return -1
		case a.Caller: // in the caller's order
			return 0
		}
		return strings.Compare(a.Name, b.Name)
	})
	return r.specs
}
