package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"unicode/utf8"

	"github.com/parley-server/parley/client"
	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/text"
)

var (
	errLater  = errors.New("left open")
	errClosed = errors.New("answered elsewhere, or too late")
)

// putQuestion asks a question at the terminal and sends the answer. It fails with errLater if the
// user leaves it open. If open ends before the answer, it reports that and fails with errClosed.
func (c *command) putQuestion(
	ctx, open context.Context, remote *client.Client, ask event.InputRequired, plan bool,
) (client.Decided, error) {
	what := "Approval"
	if ask.What == event.InputSecret {
		what = "Secret"
	}
	head := fmt.Sprintf("%s needed, until %s: %s", what, ask.ExpiresAt.Local().Format("15:04:05 MST"), ask.ApprovalID)
	if c.hasColours() {
		head = "\x1b[1;33m" + head + "\x1b[0m"
	}
	fmt.Fprintf(c.Stderr, "%s\n%s", head, renderCard(ask, terminalColumns(c.Stderr), plan))
	if err := c.typist.dropInput(open); err != nil {
		return client.Decided{}, noAnswer(err)
	}
	for {
		fmt.Fprint(c.Stderr, choiceText(ask))
		line, err := c.typist.readLine(open)
		if err != nil {
			fmt.Fprintln(c.Stderr)
			return client.Decided{}, noAnswer(err)
		}
		word, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		decided, said, err := c.sendAnswer(ctx, open, remote, ask, strings.ToLower(word), strings.TrimSpace(rest))
		if err != nil || said == "" {
			return decided, err
		}
		fmt.Fprintln(c.Stderr, plainLines(said))
	}
}

// noAnswer returns the reason for a missing answer: a closed terminal leaves the question open.
func noAnswer(err error) error {
	if errors.Is(err, io.EOF) {
		return errLater
	}
	return err
}

// choiceText returns the accepted inputs.
func choiceText(ask event.InputRequired) string {
	if ask.What == event.InputSecret {
		return "[p]rovide  [s]kip  [l]ater: "
	}
	pattern := "PATTERN"
	if s := suggestedPattern(ask); s != "" {
		pattern = text.Escape(s)
	}
	return "[a]llow  [p]attern " + pattern + "  [d]eny REASON  [l]ater: "
}

// suggestedPattern returns the pattern that the server suggests for all operations, "" unless there
// is exactly one.
func suggestedPattern(ask event.InputRequired) (pattern string) {
	for _, op := range ask.Operations {
		if pattern != "" && op.SuggestedPattern != pattern {
			return ""
		}
		pattern = op.SuggestedPattern
	}
	return pattern
}

// sendAnswer sends the user's input. said is the reason why the user has to enter it again.
func (c *command) sendAnswer(
	ctx, open context.Context, remote *client.Client, ask event.InputRequired, word, rest string,
) (d client.Decided, said string, err error) {
	id, secret := ask.ApprovalID.String(), ask.What == event.InputSecret
	switch {
	case !utf8.ValidString(rest):
		return d, "That is not UTF-8. Type it again.", nil
	case word == "l" || word == "later":
		return d, "", errLater
	case secret && (word == "p" || word == "provide"):
		value, err := c.typedInput(open, "Value of "+text.Escape(ask.KeyName))
		if err != nil {
			return d, "", noAnswer(err)
		}
		if !utf8.Valid(value.Reveal()) {
			return d, "A secret is text in UTF-8.", nil
		}
		decided, err := remote.ProvideSecret(ctx, id, string(value.Reveal()), c.approver)
		if err == nil {
			c.warnAboutValue(ask.KeyName, value, true)
		}
		return decisionOutcome(decided, err)
	case secret && (word == "s" || word == "skip"):
		return decisionOutcome(remote.SkipSecret(ctx, id, c.approver))
	case secret:
		return d, "Type p, s or l.", nil
	case (word == "a" || word == "allow") && rest == "":
		return decisionOutcome(remote.Decide(ctx, id, client.Decision{Decision: "allow", Actor: c.approver}))
	case word == "p" || word == "pattern":
		if rest == "" {
			rest = suggestedPattern(ask)
		}
		if rest == "" {
			return d, "Which pattern? Type p and the pattern, such as p wiki_write(handbook/**).", nil
		}
		return decisionOutcome(remote.Decide(ctx, id, client.Decision{Decision: "allow", Pattern: rest, Actor: c.approver}))
	case word == "d" || word == "deny":
		return decisionOutcome(remote.Decide(ctx, id, client.Decision{Decision: "deny", Reason: rest, Actor: c.approver}))
	}
	return d, "Type a, p, d or l.", nil
}

// decisionOutcome interprets the response to an answer: an earlier answer is also an outcome, and
// for an error that another input can correct it returns a text.
func decisionOutcome(d client.Decided, err error) (client.Decided, string, error) {
	if d, ok := earlierDecision(err); ok {
		return d, "", nil
	}
	refused, ok := errors.AsType[*client.Error](err)
	_, unreachable := errors.AsType[*client.Unreachable](err)
	switch {
	case ok && (refused.Status == http.StatusBadRequest || refused.Status == http.StatusForbidden ||
		refused.Status == http.StatusTooManyRequests || refused.Status >= 500):
		return d, refused.Message, nil
	case unreachable:
		return d, errorSentence(err), nil
	}
	return d, "", err
}

// earlierDecision reports whether an answer was rejected because of an earlier one.
func earlierDecision(err error) (client.Decided, bool) {
	e, ok := errors.AsType[*client.Error](err)
	if !ok || e.Code == "" || e.Status != http.StatusConflict && e.Status != http.StatusGone {
		return client.Decided{}, false
	}
	return client.Decided{Status: e.Standing, Already: true}, true
}
