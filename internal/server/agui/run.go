package agui

import (
	"net/http"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/server"
	"github.com/parley-server/parley/internal/server/request"
	"github.com/parley-server/parley/internal/session"
	"github.com/parley-server/parley/internal/store/ratelimit"
	"github.com/parley-server/parley/internal/turn"
)

// runAgent streams a turn: the one that a message starts, the rest of the one that an answer
// resumes, or the one in progress.
func (s *api) runAgent(w http.ResponseWriter, r *server.Request) error {
	body, _, err := request.ReadBody(w, r.Request)
	if err != nil {
		return err
	}
	in, err := parseInput(body, r)
	if err != nil {
		return err
	}
	if in.said != nil && !in.said.behind {
		ignored, err := s.InvokeSkill(r, &in.said.Request, in.said.text)
		if err != nil {
			return err
		}
		if ignored {
			in.ignored = append(in.ignored, "messages")
		}
	}
	release, err := s.HoldStream(r.Context(), r.Caller)
	if err != nil {
		return err
	}
	defer release()
	request.ReportIgnored(w, in.ignored)
	in.Base = s.Base(r.Request)
	id, ok, err := s.findThread(r, in.Thread)
	if err != nil {
		return err
	}
	var results []turn.ToolResult
	if ok && len(in.resume) == 0 {
		if results, err = s.ownResults(r, in, id); err != nil {
			return s.answerError(w, r, in, err)
		}
	}
	switch {
	case len(in.resume) > 0:
		err = s.answerError(w, r, in, s.answerInterrupts(w, r, in, id))
	case len(results) > 0:
		err = s.answerError(w, r, in, s.postResults(w, r, in, id, results))
	case in.said != nil:
		if ok {
			in.said.Session = id
		}
		err = s.sendMessage(w, r, in)
	default:
		err = s.streamCurrentTurn(w, r, in, id, ok)
	}
	return err
}

// answerError reports why answers of the client have no effect as the outcome of the run.
func (s *api) answerError(w http.ResponseWriter, r *server.Request, in input, err error) error {
	err = r.Names.TranslateError(err)
	if f := fault.From(err); f != nil && (f.Code.Type() == fault.InvalidRequest || f.Code.Type() == fault.NotFound ||
		f.Code.Type() == fault.Conflict) {
		return s.writeFailedRun(w, in, f, nil)
	}
	return err
}

// findThread finds the session of a thread: the one with that id, or the one that has the thread as
// its caller. ok is false if there is none yet.
func (s *api) findThread(r *server.Request, thread string) (id uuid.UUID, ok bool, err error) {
	if id, err := uuid.Parse(thread); err == nil && len(thread) == 36 {
		ctx, cancel := s.Brief(r.Context())
		defer cancel()
		_, err := s.Sessions.Head(ctx, r.Caller.Workspace.ID, id)
		if f := fault.From(err); f == nil {
			return id, err == nil, err
		}
	}
	return s.CallerSession(r.Context(), r.Caller, thread)
}

// sendMessage starts a turn with a message. If another turn blocks it, that is the outcome of the
// run.
func (s *api) sendMessage(w http.ResponseWriter, r *server.Request, in input) error {
	if err := s.CountRequest(r.Context(), w, r.Caller, ratelimit.Messages); err != nil {
		return err
	}
	rd, err := s.StartChatTurn(w, r, in.said.Request, in.said.sent)
	if err != nil {
		return s.busyError(w, in, err)
	}
	return s.streamRun(w, r, in, rd)
}

// streamRun responds with a run, which ends with calls of the client's own tools. A client that
// reconnects may have some of its messages.
func (s *api) streamRun(w http.ResponseWriter, r *server.Request, in input, rd server.Reading) (err error) {
	for next := &rd; next != nil; next = next.Then {
		next.Tools = true
	}
	if in.Messages != nil && (in.said == nil || len(in.resume) > 0) {
		if in.Calls, err = s.TurnCalls(r.Context(), r.Caller, rd); err != nil {
			return err
		}
	}
	return s.StreamReading(w, r, rd, NewEncoder(in.About, rd))
}

// busyError explains the error of a message that another turn rejects.
func (s *api) busyError(w http.ResponseWriter, in input, err error) error {
	f := fault.From(err)
	if f == nil || f.Code != fault.TurnInProgress {
		return err
	}
	busy, _ := f.Detail.Turn.(*session.ActiveTurn)
	told := *f
	if told.Message = "This thread is still answering an earlier message, and this one was not taken. Run the thread without a new message " +
		"to read on, or send multitask_strategy in forwardedProps: enqueue or interrupt."; busy.Pending.IsForUser() {
		told.Message = "This thread waits for an answer to its interrupt " + busy.Pending.ApprovalID.String() +
			", and the message was not taken. Resume the interrupt, or cancel it: with that a new message may come."
	}
	return s.writeFailedRun(w, in, &told, map[string]any{"turn": busy})
}

// writeFailedRun responds with a run that fails.
func (s *api) writeFailedRun(w http.ResponseWriter, in input, f *fault.Error, metadata map[string]any) error {
	t := NewEncoder(in.About, server.Reading{})
	failed := t.failedFrame(event.Error{Code: event.Code(f.Code), Message: f.Message})
	failed.Metadata = metadata
	return s.WriteFrames(w, append(t.Begin(), failed))
}

// streamCurrentTurn streams the turn in progress from its start.
func (s *api) streamCurrentTurn(w http.ResponseWriter, r *server.Request, in input, id uuid.UUID, ok bool) error {
	if ok {
		p, ok, err := s.AttachTurn(r.Context(), r.Caller, id)
		if err != nil {
			return err
		}
		if ok {
			return s.streamRun(w, r, in, p.Reading)
		}
	}
	return fault.Invalid(fault.Violation{Param: "/messages", Rule: "required",
		Message: "The last message is not the user's, nothing is resumed, and nothing is in progress in this thread, so the run would be empty."})
}
