package cli

import (
	"context"

	"github.com/spf13/cobra"
)

// pauseHelp describes the effect of every command that pauses.
const pauseHelp = `Within a second, on every replica, no turn starts and the running turns end with the error
agents_stopped; their commands are canceled. New messages get 503 AGENTS_STOPPED. Turns that are
queued or wait for an approval stay, and continue after a resume.`

func (c *command) workspacePause() *cobra.Command {
	return &cobra.Command{
		Use:     "pause NAME",
		Short:   "pause the agents of a workspace",
		Example: "  parley workspace pause sales\n  parley workspace pause sales --json",
		Long:    pauseHelp,
		Args:    exactArguments("NAME"),
		RunE: c.administerNamed(func(ctx context.Context, a *administration, _ []string) error {
			p, err := a.Pause(ctx)
			if err != nil {
				return err
			}
			return c.printDone(p, "Paused the workspace %s. Next: parley workspace resume %[1]s", a.slug)
		}),
	}
}

func (c *command) workspaceResume() *cobra.Command {
	return &cobra.Command{
		Use:     "resume NAME",
		Short:   "resume the agents of a workspace",
		Example: "  parley workspace resume sales\n  parley workspace resume sales --json",
		Args:    exactArguments("NAME"),
		RunE: c.administerNamed(func(ctx context.Context, a *administration, _ []string) error {
			p, err := a.Resume(ctx)
			if err != nil {
				return err
			}
			return c.printDone(p, "Resumed the workspace %s.", a.slug)
		}),
	}
}

func (c *command) serverCommand() *cobra.Command {
	return groupOf(&cobra.Command{
		Use:   "server",
		Short: "pause or resume the agents of all workspaces",
		Example: `  parley server pause
  parley server resume`,
	}, c.serverPause(), c.serverResume())
}

func (c *command) serverPause() *cobra.Command {
	return &cobra.Command{
		Use:     "pause",
		Short:   "pause the agents of all workspaces",
		Example: "  parley server pause\n  parley server pause --json",
		Long:    pauseHelp,
		Args:    nothing,
		RunE: c.administerServer(func(ctx context.Context, a *administration, _ []string) error {
			p, err := a.PauseServer(ctx)
			if err != nil {
				return err
			}
			return c.printDone(p, "Paused all workspaces. Next: parley server resume")
		}),
	}
}

func (c *command) serverResume() *cobra.Command {
	return &cobra.Command{
		Use:     "resume",
		Short:   "resume the agents of all workspaces",
		Example: "  parley server resume\n  parley server resume --json",
		Long:    "A workspace that was paused by parley workspace pause stays paused.",
		Args:    nothing,
		RunE: c.administerServer(func(ctx context.Context, a *administration, _ []string) error {
			p, err := a.ResumeServer(ctx)
			if err != nil {
				return err
			}
			return c.printDone(p, "Resumed the server.")
		}),
	}
}
