package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/parley-server/parley/client"
	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/text"
)

func (c *command) approvals() *cobra.Command {
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
	cmd.RunE = c.remotely(func(ctx context.Context, remote *client.Client, _ []string) error {
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
		return printPage(c, cmd, page, empty, []string{"ID", "KIND", "STATUS", "LEFT", "BY", "WHAT", "SESSION", "ASKED"}, func(a client.Approval) []string {
			return []string{a.ApprovalID, a.Kind, a.Status, left(a), short(decider(a), 40), short(brief(asked(a)), 60), a.SessionID, day(&a.CreatedAt)}
		})
	})
	c.paged(cmd, &q.Limit, &q.Cursor)
	cmd.Flags().StringVar(&q.Status, "status", "pending", "pending, allowed, denied, provided, skipped, expired, canceled or all")
	cmd.Flags().StringVar(&q.SessionID, "session", "", "only those of this session, by its id")
	return cmd
}

// asked returns the question of an approval; it is empty for an erased session.
func asked(a client.Approval) (ask event.InputRequired) {
	_ = json.Unmarshal(a.Request, &ask)
	return ask
}

// left returns the time left to answer.
func left(a client.Approval) string {
	if a.Status != "pending" {
		return ""
	}
	return (time.Duration(a.SecondsLeft) * time.Second).String()
}

// decider names the actor and the key that answered, "" without an answer.
func decider(a client.Approval) string {
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
		Args: exactly("ID"),
		RunE: c.remotely(func(ctx context.Context, remote *client.Client, args []string) error {
			a, err := remote.Approval(ctx, args[0])
			if err != nil {
				return err
			}
			if c.json {
				return c.data(a.Raw)
			}
			ask := asked(a)
			status := a.Status
			if a.Status == "pending" {
				status += ", " + left(a) + " left"
			}
			if by := decider(a); by != "" {
				status += " by " + by
			}
			lines := [][2]string{{a.Kind, a.ApprovalID}, {"status", status}, {"session", a.SessionID}, {"asked", day(&a.CreatedAt)}}
			if a.DecidedAt != nil {
				lines = append(lines, [2]string{"decided", day(a.DecidedAt)})
			}
			for _, more := range [][2]string{{"reason", a.Reason}, {"pattern", a.Pattern}, {"suggests", suggested(ask)}} {
				if more[1] != "" {
					lines = append(lines, more)
				}
			}
			for _, line := range lines {
				fmt.Fprintf(c.Stdout, "%-10s%s\n", line[0], text.Escape(line[1]))
			}
			_, err = fmt.Fprint(c.Stdout, card(ask, columns(c.Stdout), true))
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
		Args: exactly("ID"),
		RunE: c.remotely(func(ctx context.Context, remote *client.Client, args []string) error {
			d, err := remote.Decide(ctx, args[0], client.Decision{Decision: "allow", Pattern: pattern, Actor: c.approver})
			return c.printDecision(d, err)
		}),
	}
	c.decisionFlags(cmd)
	cmd.Flags().StringVar(&pattern, "pattern", "", "also allow calls that this pattern covers from now on; it must cover an operation of the approval")
	return cmd
}

func (c *command) approvalsDeny() *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use:   "deny ID",
		Short: "deny the operations of an approval",
		Example: `  parley approvals deny 0192f0aa-0000-7000-8000-000000000005
  parley approvals deny 0192f0aa-0000-7000-8000-000000000005 --reason "Not before Monday."`,
		Args: exactly("ID"),
		RunE: c.remotely(func(ctx context.Context, remote *client.Client, args []string) error {
			d, err := remote.Decide(ctx, args[0], client.Decision{Decision: "deny", Reason: reason, Actor: c.approver})
			return c.printDecision(d, err)
		}),
	}
	c.decisionFlags(cmd)
	cmd.Flags().StringVar(&reason, "reason", "", "why, for the agent")
	maybeEmpty(cmd, "reason")
	return cmd
}

// printDecision prints the outcome of an answer.
func (c *command) printDecision(d client.Decided, err error) error {
	if err != nil {
		return err
	}
	was, next := "It is ", "The turn continues: parley sessions tail "
	if d.Already {
		was, next = "It was decided before: ", "See the result: parley sessions show "
	}
	what := d.Status
	if d.Pattern != "" {
		what += ", and from now on " + plainLine(d.Pattern)
	}
	return c.done(d, "%s%s. %s%s", was, what, next, d.SessionID)
}
