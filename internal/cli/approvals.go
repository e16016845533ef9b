package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/parley-server/parley/client"
	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/text"
)

func (c *command) approvalsCommand() *cobra.Command {
	return groupOf(&cobra.Command{
		Use:     "approvals",
		Aliases: []string{"approval"},
		Short:   "manage approvals",
		Example: `  parley approvals list
  parley approvals allow 0192f0aa-0000-7000-8000-000000000005
  parley approvals watch`,
	}, c.approvalsList(), c.approvalsShow(), c.approvalsAllow(), c.approvalsDeny(), c.approvalsWatch())
}

func (c *command) approvalsList() *cobra.Command {
	var q client.ApprovalQuery
	cmd := &cobra.Command{
		Use:   "list",
		Short: "list approvals and secret requests",
		Example: `  parley approvals list
  parley approvals list --status all
  parley approvals list --status expired --json`,
		Args: nothing,
	}
	cmd.RunE = c.runRemotely(func(ctx context.Context, remote *client.Client, _ []string) error {
		empty, wanted := "No approvals match.", q // q keeps the filters of the flags
		switch q.Status {
		case "pending":
			empty = "No approval is pending. List the others: parley approvals list --status all"
		case "all":
			wanted.Status = ""
		}
		page, err := remote.Approvals(ctx, wanted)
		if err != nil {
			return err
		}
		return printPage(c, cmd, page, empty, []string{"ID", "KIND", "STATUS", "LEFT", "BY", "WHAT", "SESSION", "ASKED"},
			func(a client.Approval) []string {
				return []string{a.ApprovalID, a.Kind, a.Status, timeLeft(a), shortText(deciderName(a), 40),
					shortText(briefQuestion(questionOf(a)), 60), a.SessionID, formatDay(&a.CreatedAt)}
			})
	})
	c.addPageFlags(cmd, &q.Limit, &q.Cursor)
	cmd.Flags().StringVar(&q.Status, "status", "pending", "pending, allowed, denied, provided, skipped, expired, canceled or all")
	cmd.Flags().StringVar(&q.SessionID, "session", "", "only those of this session, by its id")
	return cmd
}

// questionOf returns the question of an approval; it is empty for an erased session.
func questionOf(a client.Approval) (ask event.InputRequired) {
	_ = json.Unmarshal(a.Request, &ask)
	return ask
}

// timeLeft returns the time left to answer.
func timeLeft(a client.Approval) string {
	if a.Status != "pending" {
		return ""
	}
	return (time.Duration(a.SecondsLeft) * time.Second).String()
}

// deciderName names the actor and the key that answered, "" without an answer.
func deciderName(a client.Approval) string {
	switch by := a.DecidedBy; {
	case by == nil:
		return ""
	case by.Actor == "":
		return "the key " + by.KeyID
	default:
		return text.Escape(by.Actor) + " with the key " + by.KeyID
	}
}

// actorFlag adds the flag that names the approver behind the key.
func (c *command) actorFlag(cmd *cobra.Command) {
	cmd.Flags().StringVar(&c.approver, "actor", "", "record this name as the person behind your key")
}

// decisionFlags adds the flags of a command that decides approvals.
func (c *command) decisionFlags(cmd *cobra.Command) {
	remoteFlags(cmd)
	c.actorFlag(cmd)
}

func (c *command) approvalsShow() *cobra.Command {
	return withServer(&cobra.Command{
		Use:   "show ID",
		Short: "show an approval",
		Example: `  parley approvals show 0192f0aa-0000-7000-8000-000000000005
  parley approvals show 0192f0aa-0000-7000-8000-000000000005 --json`,
		Args: exactArguments("ID"),
		RunE: c.runRemotely(func(ctx context.Context, remote *client.Client, args []string) error {
			a, err := remote.Approval(ctx, args[0])
			if err != nil {
				return err
			}
			if c.json {
				return c.printData(a.Raw)
			}
			ask := questionOf(a)
			status := a.Status
			if a.Status == "pending" {
				status += ", " + timeLeft(a) + " left"
			}
			if by := deciderName(a); by != "" {
				status += " by " + by
			}
			lines := [][2]string{{a.Kind, a.ApprovalID}, {"status", status}, {"session", a.SessionID}, {"asked", formatDay(&a.CreatedAt)}}
			if a.DecidedAt != nil {
				lines = append(lines, [2]string{"decided", formatDay(a.DecidedAt)})
			}
			for _, more := range [][2]string{{"reason", a.Reason}, {"pattern", a.Pattern}, {"suggests", suggestedPattern(ask)}} {
				if more[1] != "" {
					lines = append(lines, more)
				}
			}
			for _, line := range lines {
				fmt.Fprintf(c.Stdout, "%-10s%s\n", line[0], text.Escape(line[1]))
			}
			_, err = fmt.Fprint(c.Stdout, renderCard(ask, terminalColumns(c.Stdout), true))
			return err
		}),
	})
}

func (c *command) approvalsAllow() *cobra.Command {
	var pattern string
	cmd := &cobra.Command{
		Use:   "allow ID",
		Short: "allow the operations of an approval, once or from now on",
		Example: `  parley approvals allow 0192f0aa-0000-7000-8000-000000000005
  parley approvals allow 0192f0aa-0000-7000-8000-000000000005 --actor anna@example.com
  parley approvals allow 0192f0aa-0000-7000-8000-000000000005 --pattern "wiki_write(handbook/**)"`,
		Args: exactArguments("ID"),
		RunE: c.runRemotely(func(ctx context.Context, remote *client.Client, args []string) error {
			d, err := remote.Decide(ctx, args[0], client.Decision{Decision: "allow", Pattern: pattern, Actor: c.approver})
			return c.printDecision(d, err)
		}),
	}
	c.decisionFlags(cmd)
	cmd.Flags().StringVar(&pattern, "pattern", "",
		"also allow calls that this pattern covers from now on; it must cover an operation of the approval")
	return cmd
}

func (c *command) approvalsDeny() *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use:   "deny ID",
		Short: "deny the operations of an approval",
		Example: `  parley approvals deny 0192f0aa-0000-7000-8000-000000000005
  parley approvals deny 0192f0aa-0000-7000-8000-000000000005 --reason "Not before Monday."`,
		Args: exactArguments("ID"),
		RunE: c.runRemotely(func(ctx context.Context, remote *client.Client, args []string) error {
			d, err := remote.Decide(ctx, args[0], client.Decision{Decision: "deny", Reason: reason, Actor: c.approver})
			return c.printDecision(d, err)
		}),
	}
	c.decisionFlags(cmd)
	cmd.Flags().StringVar(&reason, "reason", "", "why, for the agent")
	maybeEmpty(cmd, "reason")
	return cmd
}

// outcomeText returns the status of a decided approval as the beginning of a sentence.
func outcomeText(status string) string {
	first := min(1, len(status))
	return strings.ToUpper(status[:first]) + status[first:]
}

// printDecision prints the outcome of an answer.
func (c *command) printDecision(d client.Decided, err error) error {
	if err != nil {
		return err
	}
	what, next := outcomeText(d.Status), "The turn continues: parley sessions tail "+d.SessionID+" --after 0"
	if d.Already {
		what, next = "Decided before: "+d.Status, "See the result: parley sessions show "+d.SessionID
	}
	if d.Pattern != "" {
		what += ", and from now on " + plainLine(d.Pattern)
	}
	return c.printDone(d, "%s. %s", what, next)
}
