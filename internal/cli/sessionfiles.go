package cli

import (
	"context"
	"fmt"
	"strconv"
	"strings"

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
		Long: `Lists the files in /workspace of a session's agent, as they were last saved, directly from the
database and without a server. A path with unprintable bytes is shown in quotes; get accepts it in
that form.`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) < 2 {
				return exactArguments("SESSION")(cmd, args)
			}
			if args[1] != "get" {
				return usageError(cmd, fmt.Sprintf("%q is too much.", args[1]), "After SESSION comes nothing, or get PATH.")
			}
			return exactArguments("SESSION", "get", "PATH")(cmd, args)
		},
		RunE: c.inWorkspace(func(ctx context.Context, a *admin, args []string) error {
			id, err := uuid.Parse(args[0])
			if err != nil {
				return noSessionID(args[0])
			}
			if _, err := a.Sessions.Head(ctx, a.Workspace.ID, id); err != nil {
				return err
			}
			if len(args) > 1 {
				return c.printFile(ctx, a, id, args[2])
			}
			return c.listFolder(ctx, a, id)
		}),
	})
}

func (c *command) listFolder(ctx context.Context, a *admin, id uuid.UUID) error {
	list, err := a.Folders.List(ctx, a.Workspace.ID, id)
	if err != nil {
		return err
	}
	for i, e := range list {
		list[i].Path, list[i].Target = printablePath(e.Path), printablePath(e.Target)
	}
	return c.printList(list, len(list), "The session's agent has no files.", []string{"PATH", "KIND", "SIZE", "TARGET"}, func(i int) []string {
		e := list[i]
		kind, size := string(e.Kind), ""
		if e.SHA256 != "" {
			size = strconv.FormatInt(e.Size, 10)
		}
		if e.Executable {
			kind = "program"
		}
		return []string{e.Path, kind, size, e.Target}
	})
}

func (c *command) printFile(ctx context.Context, a *admin, id uuid.UUID, path string) error {
	if isTerminal(c.Stdout) {
		return &problem{Exit: exitUsage, Code: "USAGE", What: "A file is not written to a terminal.", Why: "An agent has made it, and it can steer the terminal.",
			Do: "Add > FILE, or | less."}
	}
	if plain, err := strconv.Unquote(path); err == nil && strings.HasPrefix(path, `"`) {
		path = plain
	}
	f, err := a.Folders.Open(ctx, a.Workspace.ID, id, path)
	if err != nil {
		return err
	}
	return f.Copy(ctx, c.Stdout)
}

// printablePath returns a path as it is if all of it can be printed and read, else in quotes.
func printablePath(path string) string {
	if quoted := strconv.Quote(path); quoted != `"`+path+`"` || strings.Join(strings.Fields(path), " ") != path {
		return quoted
	}
	return path
}

func noSessionID(word string) error {
	return &problem{Exit: exitUsage, Code: "USAGE", What: fmt.Sprintf("%q is not a session id.", word), Why: "It is a UUID.", Do: "parley sessions list shows them."}
}
