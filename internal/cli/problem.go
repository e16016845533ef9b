package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/parley-server/parley/client"
	"github.com/parley-server/parley/internal/app"
	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/pgerr"
	"github.com/parley-server/parley/internal/store/apikey"
)

// The exit codes, as in `parley help exit-codes`.
const (
	exitOK            = 0
	exitFailed        = 1
	exitUsage         = 2
	exitInputRequired = 3
	exitAuth          = 4
	exitUnavailable   = 5
	exitDenied        = 6
	exitTimedOut      = 7
	exitCanceled      = 8
	exitInterrupted   = 130
)

func exitCodes() *cobra.Command {
	return &cobra.Command{
		Use:   "exit-codes",
		Short: "list the exit codes",
		Example: `  parley send "Hello" || echo "exit code $?"
  until parley ready; do sleep 1; done`,
		Long: `  0    done
  1    the turn or the command failed
  2    the command line or its input is invalid; do not retry
  3    the agent needs an approval or a secret, and no terminal is available to ask for it
  4    not authenticated, or the key lacks a scope
  5    the server or the database is unreachable or overloaded; retry
  6    an approval was denied or expired
  7    the turn ran out of time
  8    another client canceled the turn
  130  interrupted with Ctrl-C`,
	}
}

// exitError ends a command that has already reported everything.
type exitError int

func (e exitError) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

// exitCode returns the exit code for an error.
func exitCode(err error) int {
	if err == nil {
		return exitOK
	}
	if exit, ok := errors.AsType[exitError](err); ok {
		return int(exit)
	}
	return explainError(err).Exit
}

// problem is an error as the user sees it: three lines and an exit code.
type problem struct {
	Exit      int
	Code      string // for programs
	What      string
	Why       string
	Do        string
	RequestID string
}

func (p *problem) Error() string { return p.What + " " + p.Why }

// reportProblem writes a problem to stderr.
func (c *command) reportProblem(p *problem) {
	if c.json {
		out, err := json.Marshal(map[string]any{"error": map[string]any{
			"code": p.Code, "message": strings.TrimSpace(p.What + " " + p.Why), "hint": p.Do, "request_id": p.RequestID,
		}})
		if err == nil {
			fmt.Fprintln(c.Stderr, string(out))
			return
		}
	}
	lines := []string{p.What, p.Why, p.Do}
	if p.RequestID != "" {
		lines[1] = strings.TrimSpace(p.Why + " (request " + p.RequestID + ")")
	}
	lead := "parley: "
	for _, line := range lines {
		if line = plainLines(line); line != "" {
			fmt.Fprintln(c.Stderr, lead+strings.ReplaceAll(line, "\n", "\n        "))
			lead = "        "
		}
	}
}

// explainError converts any error to a problem.
func explainError(err error) *problem {
	if p, ok := errors.AsType[*problem](err); ok {
		return p
	}
	if errors.Is(err, context.Canceled) {
		return &problem{Exit: exitInterrupted, Code: "INTERRUPTED", What: "Interrupted."}
	}
	if e, ok := errors.AsType[*app.ConfigError](err); ok {
		return &problem{Exit: exitUsage, Code: "CONFIGURATION", What: "Invalid configuration.", Why: e.Error(),
			Do: "Correct it; `parley config list` shows what is set and where it comes from."}
	}
	if e, ok := errors.AsType[*app.StartError](err); ok {
		p := &problem{Exit: exitFailed, Code: "NOT_READY", What: "Parley cannot run.", Why: e.Error(), Do: e.Do}
		if e.Temporary {
			p.Exit = exitUnavailable
		}
		if !strings.HasSuffix(p.Why, ".") {
			p.Why += "."
		}
		return p
	}
	if sentence := storeRefusal(err); sentence != "" {
		return &problem{Exit: exitUsage, Code: "REFUSED", What: sentence, Do: "Correct the command and run it again."}
	}
	if e, ok := errors.AsType[*client.Error](err); ok {
		return explainAnswer(e)
	}
	if e, ok := errors.AsType[*client.Broken](err); ok {
		return &problem{Exit: exitUnavailable, Code: "STREAM_BROKEN", What: "The stream broke and could not be resumed.",
			Why: errorSentence(e.Err), Do: "The turn continues on the server. " + resumeCommand(e.Session, e.LastID)}
	}
	if e, ok := errors.AsType[*client.Unreachable](err); ok {
		return &problem{Exit: exitUnavailable, Code: "UNREACHABLE", What: "No answer from " + e.URL + ".", Why: errorSentence(e.Err),
			Do: "Start the server with parley serve, or set PARLEY_URL to where it is."}
	}
	if pgerr.IsLost(err) {
		return &problem{Exit: exitUnavailable, Code: "UNREACHABLE", What: "No answer from PostgreSQL.", Why: errorSentence(pgerr.Cause(err)),
			Do: "Start PostgreSQL, or correct DATABASE_URL."}
	}
	if why, remedy := pgerr.Explain(err); why != "" {
		return &problem{Exit: exitFailed, Code: "FAILED", What: "The command failed.", Why: why, Do: remedy}
	}
	return &problem{Exit: exitFailed, Code: "FAILED", What: "The command failed.", Why: errorSentence(err)}
}

// storeRefusal returns the message of a store's error that the caller can correct, with a line for
// each violation, or "".
func storeRefusal(err error) string {
	f := fault.From(err)
	switch {
	case f != nil && len(f.Detail.Violations) > 1:
		lines := make([]string, len(f.Detail.Violations))
		for i, v := range f.Detail.Violations {
			lines[i] = v.Message
		}
		return strings.Join(lines, "\n")
	case f != nil:
		return f.Message
	case errors.Is(err, apikey.ErrNotFound):
		return "The workspace has no such key, or it is revoked or expired."
	case errors.Is(err, apikey.ErrReplaced):
		return "The key is rotated already; rotate its replacement."
	case errors.Is(err, apikey.ErrOnlyOne):
		return "A workspace has one webhook_token, which is not rotated: revoke it, then create another."
	case errors.Is(err, apikey.ErrPersonal):
		return "This is the personal token of a member, who creates another one in the web application."
	}
	return ""
}

// tryAgain is the advice for a failure that ends by itself. Some messages of the server end with it.
const tryAgain = "Try again."

func explainAnswer(e *client.Error) *problem {
	if e.Code == "" {
		return notParley(e)
	}
	p := &problem{Exit: exitUsage, Code: e.Code, What: "The server refused the request.", Why: e.Message, RequestID: e.RequestID}
	if e.Status >= 500 {
		p.What = "The server cannot answer the request."
	}
	if len(e.Violations) > 1 { // the message has the first one and the number of the others
		lines := make([]string, len(e.Violations))
		for i, v := range e.Violations {
			lines[i] = strings.TrimPrefix(strings.TrimPrefix(v.Param, "/")+": "+v.Message, ": ")
		}
		p.Why = strings.Join(lines, "\n")
	}
	switch {
	case e.Status == http.StatusUnauthorized:
		p.Exit, p.Do = exitAuth, "Set PARLEY_API_KEY; parley keys create makes a key."
	case e.Code == "APPROVER_IS_SENDER":
		p.Exit, p.Do = exitAuth, "Use another key than the sender's, or deny."
	case e.Code == "TOKEN_RESTRICTED":
		p.Exit, p.Do = exitAuth, "Use an API key instead of the browser token."
	case e.Status == http.StatusForbidden:
		p.Exit, p.Do = exitAuth, "Use a key that has the scope "+e.RequiredScope+"; parley keys create --scope "+e.RequiredScope+" makes one."
	case e.Status == http.StatusTooManyRequests || e.Status >= 500:
		p.Exit, p.Why, p.Do = exitUnavailable, strings.TrimSuffix(p.Why, " "+tryAgain), tryAgain
		if e.RetryAfter > 0 {
			p.Do = "Try again in " + e.RetryAfter.String() + "."
		}
	case e.Code == "TURN_IN_PROGRESS":
		p.Exit, p.Do = exitFailed, "Wait until the session's turn has ended, or send with --if-busy enqueue or interrupt."
	case e.Code == "APPROVAL_ALREADY_DECIDED" || e.Code == "APPROVAL_EXPIRED":
		p.Exit, p.Do = exitOfApproval(e.Standing), "parley sessions list shows the state of the turn."
	case e.Code == "SESSION_NOT_FOUND" && (e.Param == "turn" || e.Param == "step"):
		p.Do = "Use --turn or --step for another request of the session."
	case e.Code == "SESSION_NOT_FOUND":
		p.Do = "parley sessions list shows the sessions."
	case e.Code == "WORKSPACE_NOT_FOUND":
		p.Do = "Set PARLEY_WORKSPACE to the workspace that the key belongs to."
	default:
		p.Do = "Correct the request and send it again."
	}
	return p
}

// notParley describes a response that is not Parley's: from a proxy in front of the server, or from
// another server.
func notParley(e *client.Error) *problem {
	p := &problem{Exit: exitUnavailable, Code: "NOT_PARLEY", What: "The response is not from Parley.", Why: e.Message,
		Do: "Set PARLEY_URL to where the server is.", RequestID: e.RequestID}
	if e.Status == http.StatusTooManyRequests || e.Status >= 500 {
		p.Do = "Try again, or set PARLEY_URL to where the server is."
	}
	return p
}

// exitOfApproval returns the exit code for an answer that came after another.
func exitOfApproval(standing string) int {
	switch standing {
	case "denied", "expired":
		return exitDenied
	case "canceled":
		return exitCanceled
	}
	return exitFailed
}

// errorSentence returns an error's text as a sentence. A failed connection names its address.
func errorSentence(err error) string {
	if dial, ok := errors.AsType[*net.OpError](err); ok && dial.Op == "dial" {
		err = fmt.Errorf("cannot connect: %w", dial.Err)
		if reason, ok := errors.AsType[*os.SyscallError](dial.Err); ok && dial.Addr != nil {
			err = fmt.Errorf("cannot connect to %s: %w", dial.Addr, reason.Err)
		}
	}
	s := strings.TrimRight(strings.TrimSpace(err.Error()), ".")
	if s == "" {
		return ""
	}
	return strings.ToUpper(s[:1]) + s[1:] + "."
}
