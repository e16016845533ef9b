package cli

import (
	"context"
	"fmt"
	"strconv"
	"unicode/utf8"

	"github.com/google/uuid"
	"github.com/spf13/cobra"
)

func (c *command) sessionsFiles() *cobra.Command {
	return withWorkspace(&cobra.Command{
		Use:   "files SESSION [get PATH]",
		Short: "list or print the files of a session's agent",
		Example: `  parley sessions files 0192f0aa-0000-7000-8000-000000000001
  parley sessions files 0192f0aa-0000-7000-8000-000000000001 --json
  parley sessions files 0192f0aa-0000-7000-8000-000000000001 get reports/2026.csv > 2026.csv`,
		Long: `Lists the files in /workspace of a session's agent, as they were last saved. A path with
unprintable bytes is shown in quotes; get accepts it in that form.`,
		Annotations: map[string]string{anyBytes: "PATH"},
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) < 2 {
				return exactArguments("SESSION")(cmd, args)
			}
			if args[1] != "get" {
				return usageError(cmd, fmt.Sprintf("%q is too much.", args[1]), "After SESSION comes nothing, or get PATH.")
			}
			return exactArguments("SESSION", "get", "PATH")(cmd, args)
		},
		RunE: c.administer(func(ctx context.Context, a *administration, args []string) error {
			if _, err := uuid.Parse(args[0]); err != nil {
				return noSessionID(args[0])
			}
			if len(args) > 1 {
				return c.printFile(ctx, a, args[0], args[2])
			}
			return c.listFolder(ctx, a, args[0])
		}),
	})
}

func (c *command) listFolder(ctx context.Context, a *administration, session string) error {
	list, err := a.SessionFiles(ctx, session)
	if err != nil {
		return err
	}
	return c.printList(list, len(list), "The session's agent has no files.", []string{"PATH", "KIND", "SIZE", "TARGET"}, func(i int) []string {
		e := list[i]
		kind, size := e.Kind, ""
		if e.SHA256 != "" {
			size = strconv.FormatInt(e.Size, 10)
		}
		if e.Executable {
			kind = "program"
		}
		return []string{e.Path, kind, size, e.Target}
	})
}

func (c *command) printFile(ctx context.Context, a *administration, session, path string) error {
	if isTerminal(c.Stdout) {
		return &problem{Exit: exitUsage, Code: "USAGE", What: "A file is not written to a terminal.",
			Why: "An agent has made it, and it can steer the terminal.",
			Do:  "Add > FILE, or | less."}
	}
	if !utf8.ValidString(path) {
		path = strconv.Quote(path)
	}
	return a.SessionFile(ctx, session, path, c.Stdout)
}

func noSessionID(word string) error {
	return &problem{Exit: exitUsage, Code: "USAGE", What: fmt.Sprintf("%q is not a session id.", word), Why: "It is a UUID.",
		Do: "parley sessions list shows them."}
}
