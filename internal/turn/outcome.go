package turn

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/session"
	"github.com/parley-server/parley/internal/store/callback"
)

// Outcome is the result of a turn, as blocking calls and callbacks return it.
type Outcome struct {
	Success          bool                `json:"success"`
	Output           *string             `json:"output"`
	SessionID        uuid.UUID           `json:"session_id"`
	Agent            string              `json:"agent,omitempty"` // "": a turn of an earlier release
	AgentVersion     *event.AgentVersion `json:"agent_version,omitempty"`
	StructuredResult json.RawMessage     `json:"structured_result,omitempty"`
	References       json.RawMessage     `json:"references,omitempty"`
	Attachments      []event.File        `json:"attachments,omitempty"`
	Rejected         json.RawMessage     `json:"rejected_attachments,omitempty"`
	Truncated        bool                `json:"truncated,omitempty"` // the provider cut the answer at its token limit
	Error            *string             `json:"error"`
	ErrorMessage     string              `json:"error_message,omitempty"`  // of the error event: what the end user can do
	InputRequired    json.RawMessage     `json:"input_required,omitempty"` // the question that the turn waits for, if Error is input_required
	ToolRequired     json.RawMessage     `json:"tool_required,omitempty"`  // the calls that the turn waits for, if Error is tool_required

	ConnectRequired json.RawMessage `json:"connect_required,omitempty"` // the link that the turn waits for, if Error is connect_required
}

// Outcome reads the result of a turn; ok is false while it has not ended.
func (s *Service) Outcome(ctx context.Context, workspace, turn uuid.UUID) (o Outcome, ok bool, err error) {
	t, answer, err := s.cfg.Sessions.Answer(ctx, workspace, turn)
	if err != nil || t.State.IsActive() {
		return o, false, err
	}
	o = Outcome{
		Success: answer.Error == nil, SessionID: t.SessionID, StructuredResult: answer.StructuredResult, References: answer.References,
		Attachments: answer.Attachments, Rejected: t.Rejected, Error: answer.Error, ErrorMessage: answer.ErrorMessage,
	}
	if answer.Usage != nil {
		var usage event.Usage
		if err := json.Unmarshal(answer.Usage, &usage); err != nil {
			return o, false, fmt.Errorf("read the usage of a turn: %w", err)
		}
		o.Truncated = usage.Truncated
	}
	if o.Success {
		o.Output = answer.Output
	}
	return o.withAgent(t), true, nil
}

// withAgent adds the agent of a turn and its version.
func (o Outcome) withAgent(t session.Turn) Outcome {
	if t.Agent != "" {
		o.Agent, o.AgentVersion = t.Agent, new(event.AgentVersion(t.AgentVersion))
	}
	return o
}

// callbackBody returns the body of a callback: the body of a blocking call, or the one defined by
// the protocol that registered the callback.
func (s *Service) callbackBody(ctx context.Context, d callback.Delivery) ([]byte, error) {
	if encode, ok := s.cfg.Reports[d.Protocol]; ok {
		return s.encodeReport(ctx, d, encode)
	}
	if d.Protocol != callback.Parley {
		return nil, fmt.Errorf("no protocol %s on this server", d.Protocol)
	}
	if d.Type == callback.InputRequired {
		asked, err := s.cfg.Sessions.Question(ctx, d.Turn, d.Seq)
		if err != nil {
			return nil, err
		}
		o, err := s.Asking(ctx, d.Workspace, d.Turn, asked)
		if err != nil {
			return nil, err
		}
		return json.Marshal(o)
	}
	o, ended, err := s.Outcome(ctx, d.Workspace, d.Turn)
	if err != nil {
		return nil, err
	}
	if !ended {
		return nil, fmt.Errorf("turn %s has not ended", d.Turn)
	}
	return json.Marshal(o)
}

// Asking is the outcome of a turn that waits for its caller: asked is the data of its
// input_required, tool_required or connect_required event.
func (s *Service) Asking(ctx context.Context, workspace, turn uuid.UUID, asked json.RawMessage) (Outcome, error) {
	t, _, err := s.cfg.Sessions.Answer(ctx, workspace, turn)
	o := Outcome{SessionID: t.SessionID, Rejected: t.Rejected}
	switch event.QuestionKind(asked) {
	case event.InputTool:
		o.Error, o.ToolRequired = new(string(event.KindToolRequired)), asked
	case event.InputConnect:
		o.Error, o.ConnectRequired = new(string(event.KindConnect)), asked
	default:
		o.Error, o.InputRequired = new(string(event.KindInputRequired)), asked
	}
	return o.withAgent(t), err
}

// encodeReport encodes the turn of a delivery as it was at its event: a turn that waited then may
// have ended since.
func (s *Service) encodeReport(ctx context.Context, d callback.Delivery, encode ReportEncoder) ([]byte, error) {
	v, err := s.cfg.Sessions.Turn(ctx, d.Workspace, d.Turn)
	if err != nil {
		return nil, err
	}
	if d.Type == callback.InputRequired {
		if v.Question, err = s.cfg.Sessions.Question(ctx, d.Turn, d.Seq); err != nil {
			return nil, err
		}
		v.Turn.State, v.Turn.Error, v.Answer = session.Waiting, nil, session.Message{}
	} else if v.Turn.State.IsActive() {
		return nil, fmt.Errorf("turn %s has not ended", d.Turn)
	}
	files, err := s.cfg.Files.OfTurns(ctx, d.Workspace, []uuid.UUID{d.Turn})
	if err != nil {
		return nil, err
	}
	return encode(v, files[d.Turn], d.At)
}
