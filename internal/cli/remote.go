package cli

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/parley-server/parley/client"
	"github.com/parley-server/parley/internal/app"
)

// remoteFlags adds the flags of every command that uses a server. The key is not a flag, since
// other users can see command lines.
func remoteFlags(cmd *cobra.Command) {
	addSettingFlag(cmd, "url", "PARLEY_URL", "the server")
	workspaceFlag(cmd)
}

// withServer is remoteFlags for a command without other flags.
func withServer(cmd *cobra.Command) *cobra.Command {
	remoteFlags(cmd)
	return cmd
}

// dialServer returns a client of the configured server.
func (c *command) dialServer(cmd *cobra.Command, retrying func(client.Retry)) (*client.Client, error) {
	if err := checkUTF8(cmd); err != nil {
		return nil, err
	}
	target, err := c.targetServer(cmd)
	if err != nil {
		return nil, err
	}
	if target.Workspace == "" {
		return nil, &problem{Exit: exitUsage, Code: "USAGE", What: "Which workspace?", Why: "PARLEY_WORKSPACE is not set.",
			Do: "Set it, or name one with --workspace."}
	}
	return c.clientOf(target, retrying)
}

func (c *command) clientOf(target app.DevEnv, retrying func(client.Retry)) (*client.Client, error) {
	remote, err := client.New(client.Options{
		URL: target.URL, Workspace: target.Workspace, Key: target.APIKey,
		UserAgent: "parley/" + app.ThisBuild().Version, Retrying: retrying,
	})
	if err != nil {
		return nil, invalidTarget(err)
	}
	return remote, nil
}

// runRemotely wraps the work of a command that calls the server: settings, client, Ctrl-C.
func (c *command) runRemotely(work func(ctx context.Context, remote *client.Client, args []string) error) func(*cobra.Command,
	[]string) error {
	return func(cmd *cobra.Command, args []string) error {
		remote, err := c.dialServer(cmd, nil)
		if err != nil {
			return err
		}
		defer remote.Close()
		ctx, stop := c.interruptContext(cmd.Context())
		defer stop()
		return work(ctx, remote, args)
	}
}

// targetServer is the server of the settings. The default is that of serve --dev in the current
// directory.
func (c *command) targetServer(cmd *cobra.Command) (app.DevEnv, error) {
	cfg, err := c.loadSettings(cmd)
	if err != nil {
		return app.DevEnv{}, err
	}
	target := app.DevEnv{URL: cfg.URL, Workspace: cfg.Workspace, APIKey: cfg.APIKey.Reveal()}
	if cfg.Source("PARLEY_URL") == "" && target.APIKey == "" {
		dev, err := app.ReadDevEnv(c.devDir())
		if err != nil {
			return target, err
		}
		if dev.APIKey != "" {
			if err := dev.CheckURL(); err != nil {
				return target, err
			}
			target.URL, target.APIKey = dev.URL, dev.APIKey
			if target.Workspace == "" {
				target.Workspace = dev.Workspace
			}
		}
	}
	switch source := cfg.Source("PARLEY_URL"); {
	case target.APIKey == "" && source != "":
		return target, &problem{Exit: exitAuth, Code: "MISSING_API_KEY", What: "The API key is missing.",
			Why: "PARLEY_API_KEY is not set, and PARLEY_URL (" + source + ") is: the key in " + app.DevDir +
				"/dev.env is used only if neither is set.",
			Do: "Set PARLEY_API_KEY; where you mean the server of serve --dev, source " + app.DevDir + "/dev.env or unset PARLEY_URL."}
	case target.APIKey == "":
		return target, &problem{Exit: exitAuth, Code: "MISSING_API_KEY", What: "The API key is missing.",
			Why: "PARLEY_API_KEY is not set, and this folder has no " + app.DevDir + "/dev.env.",
			Do:  "Set it, or start parley serve --dev in this directory."}
	}
	return target, nil
}

func (c *command) readyCommand() *cobra.Command {
	var wait time.Duration
	cmd := &cobra.Command{
		Use:   "ready",
		Short: "check whether the server is ready",
		Example: `  parley ready
  parley ready --url https://parley.example
  parley ready --wait 30s && parley send "Hello"`,
		Args: nothing,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := c.loadSettings(cmd)
			if err != nil {
				return err
			}
			target := app.DevEnv{URL: cfg.URL}
			if dev, err := app.ReadDevEnv(c.devDir()); err == nil && dev.CheckURL() == nil && cfg.Source("PARLEY_URL") == "" {
				target.URL = dev.URL
			}
			remote, err := c.clientOf(target, nil)
			if err != nil {
				return err
			}
			defer remote.Close()
			ctx, stop := c.interruptContext(cmd.Context())
			defer stop()
			if err := c.awaitReady(ctx, remote, wait); err != nil {
				return err
			}
			return c.printDone(object{"url": remote.URL(), "ready": true}, "%s is ready.", plainLine(remote.URL()))
		},
	}
	addSettingFlag(cmd, "url", "PARLEY_URL", "the server")
	cmd.Flags().DurationVar(&wait, "wait", 0, "how long to wait for the server")
	return cmd
}

// awaitReady polls until the server is ready, or the time is over.
func (c *command) awaitReady(ctx context.Context, remote *client.Client, wait time.Duration) error {
	deadline := time.Now().Add(wait)
	for {
		asked, cancel := context.WithTimeout(ctx, 5*time.Second)
		err := remote.Ready(asked)
		cancel()
		if err == nil || ctx.Err() != nil || time.Now().After(deadline) {
			return err
		}
		t := time.NewTimer(200 * time.Millisecond)
		select {
		case <-ctx.Done():
		case <-t.C:
		}
		t.Stop()
	}
}

func (c *command) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "print the version",
		Example: `  parley version
  parley version --json`,
		Args: nothing,
		RunE: func(*cobra.Command, []string) error {
			if c.json {
				return printJSON(c.Stdout, app.ThisBuild())
			}
			_, err := io.WriteString(c.Stdout, versionLine())
			return err
		},
	}
}

func versionLine() string {
	b := app.ThisBuild()
	var details []string
	if b.Commit != "" {
		commit := b.Commit
		if b.Modified {
			commit += " with changes"
		}
		details = append(details, commit)
	}
	if b.Date != "" {
		details = append(details, b.Date)
	}
	details = append(details, b.Go, b.Platform)
	return fmt.Sprintf("parley %s (%s)\n", b.Version, strings.Join(details, ", "))
}
