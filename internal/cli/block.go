package cli

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"iter"
	"strings"
	"time"

	"github.com/parley-server/parley/client"
	"github.com/parley-server/parley/internal/event"
)

// awaitAnswer waits for the whole answer. Without a caller id it generates one, so that the session
// can be found before the answer.
func (s *sending) awaitAnswer(ctx context.Context) error {
	if s.message.SessionID == "" && s.message.CallerID == "" {
		s.message.CallerID = "cli-" + strings.ToLower(rand.Text())
	}
	asking, leave := context.WithCancelCause(ctx)
	defer leave(nil)
	stop := s.c.onInterrupt(func(n int) {
		if n == 0 {
			s.printNote("Canceling; Ctrl-C again leaves the turn running.")
			if err := s.cancelTurn(asking); err != nil {
				s.printNote("It could not be canceled: " + err.Error())
			}
			return
		}
		leave(errLeft)
	})
	answer, err := s.remote.Ask(asking, s.message)
	interrupted := stop()
	switch {
	case err != nil && interrupted > 1:
		s.printNote("The turn continues on the server.")
		return exitError(exitInterrupted)
	case err != nil:
		return err
	case answer.InputRequired != nil:
		return s.awaitRest(ctx, answer)
	}
	return s.printAnswer(answer.Raw, answer.Error, interrupted > 0)
}

// awaitRest waits for the rest of a turn that has asked a question. A blocking call has ended at
// the question, and would again: the rest comes from the stream and from the session's messages.
func (s *sending) awaitRest(ctx context.Context, answer client.Answer) error {
	v := s.newViewer()
	v.replayed, v.session = true, answer.SessionID
	var asked event.InputRequired
	if err := json.Unmarshal(answer.InputRequired, &asked); err != nil {
		return fmt.Errorf("read the question: %w", err)
	}
	if v.answererOf(asked) == unanswered {
		v.open = &question{InputRequired: asked, raw: answer.InputRequired}
		if err := s.printAnswer(answer.Raw, nil, false); err != nil {
			return err
		}
		v.printOpenQuestion()
		return v.finishStream(errLater, 0)
	}
	a, err := s.remote.Approval(ctx, asked.ApprovalID.String())
	if err != nil {
		return err
	}
	end := v.watchFrames(ctx, func(ctx context.Context) iter.Seq2[client.Frame, error] {
		return s.remote.Follow(ctx, answer.SessionID, "")
	})
	exit := exitCode(end)
	switch {
	case exit == exitInputRequired:
		answer.InputRequired = v.open.raw
	case v.failed == nil && exit != exitOK && exit != exitDenied:
		return end
	default:
		if err := s.completeAnswer(ctx, &answer, a.TurnID); err != nil {
			return err
		}
	}
	raw, err := json.Marshal(answer)
	if err != nil {
		return fmt.Errorf("encode the answer: %w", err)
	}
	if err := s.printAnswer(raw, nil, false); err != nil || exit == exitOK {
		return err
	}
	return exitError(exit)
}

// completeAnswer returns the answer that a blocking call would have returned at the end of a turn.
func (s *sending) completeAnswer(ctx context.Context, a *client.Answer, turn string) error {
	messages, err := s.remote.AllMessages(ctx, a.SessionID)
	if err != nil {
		return err
	}
	for _, m := range messages {
		if m.Role != "assistant" || m.TurnID != turn {
			continue
		}
		a.Success, a.Error, a.InputRequired = m.Error == nil, m.Error, nil
		a.StructuredResult, a.References, a.Attachments = m.StructuredResult, m.References, m.Attachments
		if a.Success {
			a.Output = m.Content
		}
	}
	return nil
}

// printAnswer prints a blocking answer; its error becomes the exit code.
func (s *sending) printAnswer(raw json.RawMessage, failed *string, interrupted bool) error {
	if _, err := fmt.Fprintln(s.c.Stdout, strings.TrimRight(string(raw), "\n")); err != nil || failed == nil {
		return err
	}
	return exitError(exitOf(*failed, interrupted))
}

// cancelTurn cancels the turn of a session that may not have responded yet.
func (s *sending) cancelTurn(ctx context.Context) error {
	ctx, done := context.WithTimeout(ctx, 10*time.Second)
	defer done()
	session := s.message.SessionID
	if session == "" {
		page, err := s.remote.Sessions(ctx, client.SessionQuery{CallerID: s.message.CallerID, Limit: 1})
		if err != nil {
			return err
		}
		if len(page.Data) == 0 {
			return fmt.Errorf("the session is not there yet")
		}
		session = page.Data[0].SessionID
	}
	_, err := s.remote.Cancel(ctx, session)
	return err
}

// submitMessage sends a message whose end a callback reports.
func (s *sending) submitMessage(ctx context.Context) error {
	ctx, stop := s.c.interruptContext(ctx)
	defer stop()
	q, err := s.remote.Submit(ctx, s.message)
	if err != nil {
		return err
	}
	if s.output == "json" {
		return s.printAnswer(q.Raw, nil, false)
	}
	s.printNote(
		fmt.Sprintf(
			"The message is queued; %s is called when the turn ends.\nSee parley callbacks show %s, or watch it: parley "+
				"sessions tail %s", plainLine(s.message.Callback.URL), q.CallbackID, q.SessionID))
	return nil
}
