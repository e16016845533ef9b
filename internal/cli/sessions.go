package cli

import (
	"context"
	"errors"
	"iter"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/parley-server/parley/client"
	"github.com/parley-server/parley/internal/text"
)

func (c *command) sessionsCommand() *cobra.Command {
	return groupOf(&cobra.Command{
		Use:     "sessions",
		Aliases: []string{"session"},
		Short:   "manage sessions",
		Example: `  parley sessions list
  parley sessions show 0192f0aa-0000-7000-8000-000000000001
  parley sessions tail 0192f0aa-0000-7000-8000-000000000001 --after 1038`,
	}, c.sessionsList(), c.sessionsShow(), c.sessionsTail(), c.sessionsExport(), c.sessionsContext(), c.sessionsFork(), c.sessionsCancel(),
		c.sessionsUpdate(), c.sessionsFiles(), c.sessionsErase())
}

func (c *command) sessionsList() *cobra.Command {
	var q client.SessionQuery
	var metadata []string
	cmd := &cobra.Command{
		Use:   "list",
		Short: "list sessions",
		Example: `  parley sessions list --status thinking
  parley sessions list --user anna@example.com --metadata plan=gold
  parley sessions list --q "travel policy" --json`,
		Args: nothing,
	}
	cmd.RunE = c.runRemotely(func(ctx context.Context, remote *client.Client, _ []string) error {
		var err error
		if q.Metadata, err = readMetadata(cmd, metadata); err != nil {
			return err
		}
		page, err := remote.Sessions(ctx, q)
		if err != nil {
			return err
		}
		return printPage(c, cmd, page, "No sessions match. Start one: parley send \"Hello\"",
			[]string{"SESSION", "STATUS", "CALLER", "USER", "TITLE", "MESSAGES", "UPDATED"}, func(s client.Session) []string {
				status := s.Status
				if s.Pending != nil {
					status = "waits for " + s.Pending.Kind
				}
				if s.Error != nil {
					status = *s.Error
				}
				if !s.ErasedAt.IsZero() {
					status = "erased"
				}
				return []string{s.SessionID, status, s.CallerID, s.User, shortText(s.Title, 40), strconv.Itoa(s.MessageCount), formatDay(&s.UpdatedAt)}
			})
	})
	c.addPageFlags(cmd, &q.Limit, &q.Cursor)
	cmd.Flags().StringVarP(&q.CallerID, "caller", "c", "", "only the session of this caller id")
	cmd.Flags().StringVar(&q.User, "user", "", "only the sessions of this end user")
	cmd.Flags().StringArrayVar(&metadata, "metadata", nil, "only sessions with this pair name=text; may be repeated")
	cmd.Flags().StringVar(&q.Status, "status", "", "only not_started, thinking, completed, waiting, failed or canceled")
	cmd.Flags().StringVar(&q.Search, "q", "", "only sessions with these words in the title or in a message")
	return cmd
}

func (c *command) sessionsTail() *cobra.Command {
	var after, output string
	cmd := &cobra.Command{
		Use:   "tail SESSION",
		Short: "follow the stream of a session",
		Example: `  parley sessions tail 0192f0aa-0000-7000-8000-000000000001
  parley sessions tail 0192f0aa-0000-7000-8000-000000000001 --after 1038
  parley sessions tail 0192f0aa-0000-7000-8000-000000000001 --output stream-json`,
		Long: `Prints the stream of the turn in progress from its beginning, or with --after from the frame after
that id. In a session without a turn, such as a new fork, it waits for the first one. Ctrl-C leaves the turn running; parley sessions cancel ends it.`,
		Args: exactArguments("SESSION"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if output != "text" && output != "stream-json" {
				return usageError(cmd, "Unknown output "+strconv.Quote(output)+".", "--output takes text or stream-json.")
			}
			remote, err := c.dialServer(cmd, func(r client.Retry) { c.reportRetry(r, false) })
			if err != nil {
				return err
			}
			defer remote.Close()
			v := c.newViewer(remote, output)
			v.session, v.lastID, v.replayed, v.reading = args[0], after, true, true
			if !c.isAttended() {
				v.approving.rule = approveWait // a watching user is not asked
			}
			return v.watchFrames(cmd.Context(), func(ctx context.Context) iter.Seq2[client.Frame, error] {
				return v.followFirst(ctx, args[0], after)
			})
		},
	}
	remoteFlags(cmd)
	cmd.Flags().StringVar(&after, "after", "", "the id of the last received frame")
	cmd.Flags().StringVarP(&output, "output", "o", "text", "text or stream-json")
	return cmd
}

// firstTurnPoll is the pause between two looks for the first turn of a session.
const firstTurnPoll = time.Second

// followFirst follows a session. A session that has no turn yet is followed from its first turn.
func (v *viewer) followFirst(ctx context.Context, session, after string) iter.Seq2[client.Frame, error] {
	return func(yield func(client.Frame, error) bool) {
		cursor := after
		for after == "" || after == "0" {
			s, err := v.remote.Session(ctx, session)
			if err != nil || s.Status != "not_started" { // the stream reports an error
				break
			}
			if cursor == after {
				v.printLine("The session has no turn yet. Waiting for its first message; Ctrl-C ends.")
			}
			cursor = "0" // the turn may end before the next look
			select {
			case <-time.After(firstTurnPoll):
			case <-ctx.Done():
				err := context.Cause(ctx)
				if errors.Is(err, errLeft) {
					err = exitError(exitInterrupted) // no turn continues
				}
				yield(client.Frame{}, err)
				return
			}
		}
		for f, err := range v.remote.Follow(ctx, session, cursor) {
			if !yield(f, err) {
				return
			}
		}
	}
}

func (c *command) sessionsUpdate() *cobra.Command {
	var change client.SessionChange
	var metadata []string
	cmd := &cobra.Command{
		Use:   "update SESSION",
		Short: "update the title, user or metadata of a session",
		Example: `  parley sessions update 0192f0aa-0000-7000-8000-000000000001 --title "Travel policy"
  parley sessions update 0192f0aa-0000-7000-8000-000000000001 --user anna@example.com --metadata plan=gold`,
		Args: exactArguments("SESSION"),
	}
	cmd.RunE = c.runRemotely(func(ctx context.Context, remote *client.Client, args []string) (err error) {
		if change.Metadata, err = readMetadata(cmd, metadata); err != nil {
			return err
		}
		if change.Title == "" && change.User == "" && change.Metadata == nil {
			return usageError(cmd, "Nothing to change.", "Give --title, --user or --metadata.")
		}
		changed, err := remote.UpdateSession(ctx, args[0], change)
		if err != nil {
			return err
		}
		return c.printDone(changed, "Changed the session.")
	})
	remoteFlags(cmd)
	cmd.Flags().StringVar(&change.Title, "title", "", "the new title")
	cmd.Flags().StringVar(&change.User, "user", "", "the new end user")
	cmd.Flags().StringArrayVar(&metadata, "metadata", nil, "a pair name=text; may be repeated, and replaces all pairs")
	return cmd
}

func (c *command) sessionsFork() *cobra.Command {
	var at int64
	cmd := &cobra.Command{
		Use:   "fork SESSION",
		Short: "fork a session",
		Example: `  parley sessions fork 0192f0aa-0000-7000-8000-000000000001
  parley sessions fork 0192f0aa-0000-7000-8000-000000000001 --at 1054
  parley send --session $(parley sessions fork 0192f0aa-0000-7000-8000-000000000001) "Try it another way"`,
		Long: `Makes a session whose history is that of SESSION. With --at it ends with the turns that had ended
at that event. The fork has no copy: an erasure of SESSION also removes its messages from the fork.
Its folder is empty.`,
		Args: exactArguments("SESSION"),
	}
	cmd.RunE = c.runRemotely(func(ctx context.Context, remote *client.Client, args []string) error {
		made, err := remote.Fork(ctx, args[0], at)
		if err != nil {
			return err
		}
		shown := object{"session_id": made.SessionID, "status": made.Status, "created_at": made.CreatedAt,
			"forked_from": object{"session_id": made.ForkedFrom.SessionID, "seq": made.ForkedFrom.Seq}}
		return c.printNamed(made.SessionID, shown, "Forked the session at event %d.", made.ForkedFrom.Seq)
	})
	remoteFlags(cmd)
	cmd.Flags().Int64Var(&at, "at", 0, "the id of an event; default the newest")
	cmd.PreRunE = func(*cobra.Command, []string) error { return checkLeast(cmd, 1, "at") }
	return cmd
}

func (c *command) sessionsCancel() *cobra.Command {
	return withServer(&cobra.Command{
		Use:   "cancel SESSION",
		Short: "cancel the running turn of a session",
		Example: `  parley sessions list --status thinking
  parley sessions cancel 0192f0aa-0000-7000-8000-000000000001`,
		Args: exactArguments("SESSION"),
		RunE: c.runRemotely(func(ctx context.Context, remote *client.Client, args []string) error {
			done, err := remote.Cancel(ctx, args[0])
			if err != nil {
				return err
			}
			switch {
			case !done.Canceled:
				return c.printDone(done, "No turn is in progress.")
			case done.RunnerHaltDeferred:
				return c.printDone(done, "The turn is canceled. Its worker has not confirmed it yet; nothing that it still does is kept.")
			}
			return c.printDone(done, "The turn is canceled.")
		}),
	})
}

// shortText cuts a text for a column of n characters.
func shortText(s string, n int) string { return text.Truncate(s, n-1) }
