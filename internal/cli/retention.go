package cli

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"
)

func (c *command) sessionsErase() *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use:     "delete SESSION",
		Aliases: []string{"erase"},
		Short:   "delete the content and files of a session permanently",
		Example: `  parley sessions delete 0192f0aa-0000-7000-8000-000000000001
  parley sessions delete 0192f0aa-0000-7000-8000-000000000001 --yes      without asking`,
		Long: `Removes the messages, events, files, callbacks and caller id of a session. On the database it needs
no running server. A running turn is canceled. A record remains that the session existed, when, and
which user or key erased it; docs/guides/retention.md describes the copies in PostgreSQL's own files
and in backups.`,
		Args: exactArguments("SESSION"),
		RunE: c.administer(func(ctx context.Context, a *administration, args []string) error {
			id, err := uuid.Parse(args[0])
			if err != nil {
				return noSessionID(args[0])
			}
			if err := c.requireConsent(yes, fmt.Sprintf("Erase the content of session %s permanently?", id), "Nothing was erased."); err != nil {
				return err
			}
			done, err := a.EraseSession(ctx, id.String())
			if err != nil {
				return err
			}
			shown := object{"session_id": id, "erased_at": done.ErasedAt, "erased_before": done.Before, "canceled_turns": done.Canceled}
			switch {
			case done.Before:
				return c.printDone(shown, "The session was erased before, at %s.", formatDay(&done.ErasedAt))
			case done.Canceled > 0:
				return c.printDone(shown, "Canceled %d %s.\nErased the session.", done.Canceled, pluralize(done.Canceled, "turn", "turns"))
			}
			return c.printDone(shown, "Erased the session.")
		}),
	}
	yesFlag(cmd, &yes)
	workspaceFlag(cmd)
	return cmd
}

// partitionShown is a partition as `retention --json` prints it.
type partitionShown struct {
	Partition string    `json:"partition"`
	Holds     string    `json:"holds"`
	Until     time.Time `json:"until"`
	Bytes     int64     `json:"bytes"`
}

func (c *command) retentionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "retention",
		Short: "show the partitions of the log and their retention",
		Example: `  parley retention
  parley retention --json`,
		Long: `Lists the partitions of the log and the time until which each is needed, by PARLEY_REPLAY_WINDOW and
PARLEY_AUDIT_RETENTION of this command. Servers remove partitions hourly, by their own settings.`,
		Args: nothing,
		RunE: c.administerServer(func(ctx context.Context, a *administration, _ []string) error {
			r, err := a.Retention(ctx)
			if err != nil {
				return err
			}
			shown := make([]partitionShown, len(r.Partitions))
			for i, p := range r.Partitions {
				shown[i] = partitionShown{p.Name, p.Holds, p.Until, p.Bytes}
			}
			fmt.Fprintf(c.Stderr, "Text is needed from %s on, other records from %s on.\n", formatDay(&r.DeltasBefore), formatDay(&r.RecordsBefore))
			if a.onDatabase {
				fmt.Fprintln(c.Stderr, "Servers may use other settings: these are PARLEY_REPLAY_WINDOW and PARLEY_AUDIT_RETENTION of this command.")
			}
			if r.PastSessions > 0 {
				fmt.Fprintf(c.Stderr, "%d %s past the audit retention.\n", r.PastSessions, pluralize(r.PastSessions, "session is", "sessions are"))
			}
			return c.printList(shown, len(shown), "The log has no partitions yet.", []string{"PARTITION", "HOLDS", "UNTIL", "BYTES"},
				func(i int) []string {
					p := shown[i]
					return []string{p.Partition, p.Holds, formatDay(&p.Until), strconv.FormatInt(p.Bytes, 10)}
				})
		}),
	}
}
