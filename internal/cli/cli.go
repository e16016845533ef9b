// Package cli is the command line: `parley serve`, the commands for administrators, which use a
// server's administration API or the database, and those that use a server's public API. Results go
// to stdout and everything else to stderr; an error states what failed, why, and what to do.
package cli

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/parley-server/parley/internal/app"
)

// Host is the environment of a command.
type Host struct {
	Stdin   io.Reader // nil: no input
	Stdout  io.Writer
	Stderr  io.Writer
	Environ []string
	Dir     string // the current directory
	// Interrupts delivers Ctrl-C and SIGTERM. The first stops a command in order, the second at
	// once.
	Interrupts <-chan os.Signal
	Exit       func(code int) // ends the process; nil: never
	// Patience is how long parley mcp waits for responses after the end of its stdin; 0: 10 s.
	Patience time.Duration
}

// Run executes a command line and returns its exit code. Callers can add more commands.
func Run(ctx context.Context, host Host, args []string, more ...*cobra.Command) int {
	c := &command{Host: host, ctrlC: make(chan struct{})}
	defer func() { c.typist.closeTerminal() }()
	root := c.rootCommand()
	root.AddCommand(more...)
	root.SetArgs(args)
	root.SetIn(host.Stdin)
	root.SetOut(host.Stdout)
	root.SetErr(host.Stderr)
	initCompletion(root)
	c.polishCommand(root)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return exitOK
	}
	if exit, ok := errors.AsType[exitError](err); ok {
		return int(exit)
	}
	p := explainError(err)
	if !c.started && p.Exit == exitFailed {
		p.Exit, p.Code, p.What, p.Do = exitUsage, "USAGE", "Invalid command line.", "See parley --help."
	}
	c.reportProblem(p)
	return p.Exit
}

// command is the state that all commands share.
type command struct {
	Host
	configFile string
	json       bool // --json was given: errors are JSON too
	started    bool // the command line was parsed
	typist     *keyboard
	ctrlC      chan struct{} // an interrupt that was typed as a key
	approver   string        // --actor: the approver behind the key, recorded with a decision
}

// devDir returns the development directory below the current one.
func (c *command) devDir() string { return filepath.Join(c.Dir, app.DevDir) }

func (c *command) rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "parley",
		Short: "A streaming chat API for agents, in one binary on one PostgreSQL",
		Example: `  parley serve --dev                        run a server with a private database and a demo workspace
  parley send "What can you do?"            send a message and print the answer as it arrives
  parley help exit-codes                    list the exit codes`,
		SilenceErrors: true,
		SilenceUsage:  true,
		RunE:          runGroup,
		Args:          cobra.ArbitraryArgs,
	}
	root.PersistentFlags().StringVar(&c.configFile, "config", "", "file with settings, one NAME=value a line (PARLEY_CONFIG)")
	_ = root.MarkPersistentFlagFilename("config")
	root.Version = app.ThisBuild().Version
	root.SetVersionTemplate(versionLine())
	root.SetHelpCommand(helpCommand())
	root.AddCommand(
		c.serveCommand(), c.migrateCommand(), c.auditCommand(), c.workspaceCommand(), c.agentCommand(), c.serverCommand(), c.usersCommand(),
		c.keysCommand(), c.secretsCommand(), c.vaultCommand(), c.wikiCommand(), c.skillsCommand(), c.permissionsCommand(), c.toolsCommand(),
		c.allowlistCommand(), c.egressCommand(), c.modelsCommand(), c.budgetCommand(), c.sandboxCommand(), c.runnerCommand(),
		c.sendCommand(), c.sessionsCommand(),
		c.approvalsCommand(), c.secretCommand(), c.filesCommand(), c.retentionCommand(),
		c.callbacksCommand(), c.listenCommand(), c.mcpCommand(), c.applyCommand(), c.exportCommand(),
		c.docsCommand(), c.configCommand(), c.devCommand(), c.readyCommand(), c.doctorCommand(), c.topCommand(), c.versionCommand(),
		movedBench(), exitCodes(),
	)
	return root
}

// groupOf makes a command with subcommands only.
func groupOf(cmd *cobra.Command, below ...*cobra.Command) *cobra.Command {
	cmd.RunE, cmd.Args = runGroup, cobra.ArbitraryArgs
	cmd.AddCommand(below...)
	return cmd
}

// runGroup runs a command with subcommands only.
func runGroup(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return unknownCommand(cmd, args[0])
	}
	return cmd.Help()
}
