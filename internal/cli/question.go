package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/parley-server/parley/client"
	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/text"
)

// question is the question that a turn waits for, and the state of its answer.
type question struct {
	event.InputRequired
	raw     json.RawMessage
	close   context.CancelCauseFunc // ends the question
	done    chan struct{}           // closed: no question is open
	decided client.Decided          // the answer from here
	err     error
}

// askQuestion handles a question according to --approve. errLater ends the stream: no user can
// answer.
func (v *viewer) askQuestion(ctx context.Context, leave context.CancelCauseFunc, f client.Frame) error {
	var asked event.InputRequired
	if err := json.Unmarshal(f.Data, &asked); err != nil {
		return fmt.Errorf("read the question: %w", err)
	}
	if v.replayed {
		a, err := v.remote.Approval(ctx, asked.ApprovalID.String())
		if err != nil {
			return err
		}
		if a.Status != "pending" {
			v.noteDecision(client.Decided{Status: a.Status})
			return nil
		}
	}
	v.mu.Lock()
	v.breakLine()
	if v.first == 0 {
		v.first = -1 // from now on it would include the user's time
	}
	v.mu.Unlock()
	open, closed := context.WithCancelCause(ctx)
	q := &question{InputRequired: asked, raw: f.Data, close: closed, done: make(chan struct{})}
	v.open = q
	switch v.answererOf(asked) {
	case byPattern:
		v.printLine("Allowed, as --approve says: " + briefQuestion(asked))
		return v.decideQuestion(ctx, client.Decision{Decision: "allow"})
	case byDenial:
		v.printLine("Denied, as --approve says: " + briefQuestion(asked))
		return v.decideQuestion(ctx, client.Decision{Decision: "deny", Reason: "The sender of the message denies every approval."})
	case elsewhere:
		v.printLine("Waiting for another client. " + q.answerHint())
		close(q.done)
	case atTerminal:
		go func() {
			defer close(q.done)
			plan := v.output != "text" || v.result || !v.screen // it was printed before
			q.decided, q.err = v.c.putQuestion(ctx, open, v.remote, asked, plan)
			if q.err != nil && !errors.Is(q.err, errClosed) {
				leave(q.err)
			}
		}()
	case unanswered:
		close(q.done)
		v.printOpenQuestion()
		return errLater
	}
	return nil
}

// printOpenQuestion prints the open question for a program that can answer it.
func (v *viewer) printOpenQuestion() {
	fmt.Fprintln(v.c.Stderr, text.Escape(string(v.open.raw))) // still JSON: escapes are JSON's own
}

// answerer is the source of a question's answer.
type answerer int

const (
	unanswered answerer = iota // the question stays open
	atTerminal                 // the user at the terminal
	elsewhere                  // a user elsewhere
	byPattern                  // allowed by a pattern
	byDenial                   // denied
)

// answererOf returns the source of a question's answer, by --approve.
func (v *viewer) answererOf(asked event.InputRequired) answerer {
	approval := asked.What == event.InputApproval
	switch {
	case approval && v.approving.coversAll(asked):
		return byPattern
	case approval && v.approving.rule == approveNever:
		return byDenial
	case v.approving.rule == approveWait:
		return elsewhere
	case !v.approving.noInput && v.c.isAttended():
		return atTerminal
	}
	return unanswered
}

// decideQuestion answers the open question with a given decision.
func (v *viewer) decideQuestion(ctx context.Context, d client.Decision) error {
	q := v.open
	defer close(q.done)
	d.Actor = v.c.approver
	decided, err := v.remote.Decide(ctx, q.ApprovalID.String(), d)
	if other, ok := earlierDecision(err); ok {
		decided, err = other, nil
	}
	q.decided = decided
	return err
}

// endQuestion ends the question. It does not wait for the user's input, only for a request that is
// being sent.
func (q *question) endQuestion() {
	q.close(errClosed)
	<-q.done
}

// noteAnswer records how the open question was answered.
func (v *viewer) noteAnswer(ctx context.Context) error {
	q := v.open
	if q == nil {
		return nil
	}
	q.endQuestion()
	if q.err != nil && !errors.Is(q.err, errClosed) {
		return q.err
	}
	v.open = nil
	d := q.decided
	if d.Status == "" { // it stays unknown without the scope to read it
		if a, err := v.remote.Approval(ctx, q.ApprovalID.String()); err == nil {
			d = client.Decided{Status: a.Status, Already: true}
		}
	}
	v.noteDecision(d)
	return nil
}

// noteDecision records the outcome for the exit code, and reports decisions from elsewhere.
func (v *viewer) noteDecision(d client.Decided) {
	switch d.Status {
	case string(event.Expired):
		v.printLine("The approval has expired. It counts as denied.")
	case string(event.Allowed), string(event.Denied), string(event.Provided), string(event.Skipped):
		if d.Already {
			v.printLine("Answered elsewhere: " + d.Status + ".")
		}
	}
	v.denied = v.denied || d.Status == string(event.Denied) || d.Status == string(event.Expired)
}

// answerHint explains how to answer a question from anywhere.
func (q *question) answerHint() string {
	words := "parley approvals allow %s (or deny)"
	if q.What == event.InputSecret {
		words = "parley secret provide %s (or skip)"
	}
	return fmt.Sprintf("Answer by %s: "+words+".", q.ExpiresAt.Local().Format("15:04:05 MST"), q.ApprovalID)
}
