package turn

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/agent"
	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/model"
	"github.com/parley-server/parley/internal/session"
)

// Options are what the caller of a message chooses. They are stored with its turn.
type Options struct {
	Model         model.Options `json:"model,omitzero"`
	ToolChoice    ToolChoice    `json:"tool_choice,omitempty"`
	OneCall       bool          `json:"one_call,omitempty"` // at most one call of the caller's tools at a time
	Forced        *ForcedTool   `json:"forced,omitempty"`
	EndUnanswered bool          `json:"end_unanswered,omitempty"` // the turn ends if the caller posts no results in time
	Deleted       bool          `json:"deleted,omitempty"`        // the caller has deleted the answer: its protocol no longer has it
}

// ToolChoice decides whether the model may answer without a call.
type ToolChoice string

const (
	ToolsAuto     ToolChoice = ""
	ToolsRequired ToolChoice = "required" // every reply calls a tool
)

// ForcedTool is the only tool that the caller wants to be called: its input is the structured answer
// of the turn, and no result is posted.
type ForcedTool struct {
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	Required    bool   `json:"required,omitempty"` // the caller required a call and did not name the tool
}

// DeleteAnswer makes the answer of a turn unknown to the protocol of its caller. The session keeps it.
func (s *Service) DeleteAnswer(ctx context.Context, id, turn uuid.UUID) error {
	return s.cfg.Sessions.Update(ctx, id, func(tx *session.Tx) error {
		return tx.ChooseOptions(ctx, turn, json.RawMessage(`{"deleted":true}`))
	})
}

func (o Options) isZero() bool { return reflect.ValueOf(o).IsZero() }

// ParseOptions parses the options of a turn.
func ParseOptions(t session.Turn) (o Options, err error) {
	if t.Options == nil {
		return o, nil
	}
	if err := json.Unmarshal(t.Options, &o); err != nil {
		return o, fmt.Errorf("read the options of a turn: %w", err)
	}
	return o, nil
}

// hasContext reports whether the caller sent a context.
func (r Request) hasContext() bool {
	return r.Supplied.Instructions != "" || len(r.Supplied.Messages) > 0
}

// addContext adds the options and the context of a message to its turn. The inputs of supplied calls
// can be any text.
func (r Request) addContext(n *session.NewTurn) (err error) {
	if !r.Options.isZero() {
		if n.Options, err = json.Marshal(r.Options); err != nil {
			return fmt.Errorf("encode the options: %w", err)
		}
	}
	if r.hasContext() {
		supplied := event.Supplied{Instructions: r.Supplied.Instructions, Messages: slices.Clone(r.Supplied.Messages)}
		for i, m := range supplied.Messages {
			supplied.Messages[i].Calls = slices.Clone(m.Calls)
			for k, c := range m.Calls {
				supplied.Messages[i].Calls[k].Input = model.Input(string(c.Input))
			}
		}
		n.Supplied = &supplied
	}
	return nil
}

// applyOptions applies the options of a turn to its agent.
func applyOptions(ag *agent.Agent, t session.Turn) error {
	o, err := ParseOptions(t)
	if err != nil {
		return err
	}
	ag.Options, ag.MustCall, ag.OneCall, ag.EndUnanswered = o.Model, o.ToolChoice == ToolsRequired, o.OneCall, o.EndUnanswered
	if o.Forced != nil && ag.Output != nil {
		ag.Output.Description = fmt.Sprintf("The answer is the input of the tool %s. %s", o.Forced.Name, o.Forced.Description)
	}
	return nil
}
