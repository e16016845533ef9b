package cli

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/spf13/cobra"

	"github.com/parley-server/parley/client"
	"github.com/parley-server/parley/internal/actor"
	"github.com/parley-server/parley/internal/app"
)

// administration is the input of a command for administrators: the administration API of a server
// or, without one, the same handlers in this process on the database.
type administration struct {
	client.Admin
	slug       string // the workspace; "" for commands on the server
	onDatabase bool   // with the settings of this command, in place of a server's
}

// administerWork is the work of a command for administrators.
type administerWork func(ctx context.Context, a *administration, args []string) error

// administer wraps the work of a command in one workspace: settings, client, Ctrl-C.
func (c *command) administer(work administerWork) func(*cobra.Command, []string) error {
	return c.administerIn(func(ctx context.Context, on *adminTarget, _ []string) (string, error) { return on.chosenWorkspace(ctx) }, work)
}

// administerNamed is administer for a command whose first argument names the workspace.
func (c *command) administerNamed(work administerWork) func(*cobra.Command, []string) error {
	return c.administerIn(func(_ context.Context, _ *adminTarget, args []string) (string, error) { return args[0], nil }, work)
}

// administerServer is administer for a command on the server.
func (c *command) administerServer(work administerWork) func(*cobra.Command, []string) error {
	return c.administerIn(func(context.Context, *adminTarget, []string) (string, error) { return "", nil }, work)
}

// administerOutside is administer for a command that depends on the settings of a server: it may call a
// tool server or a model, or needs a provider or a price. Where a server of Parley is known, it does
// this, with its own settings and the hosts that only it reaches.
func (c *command) administerOutside(work administerWork) func(*cobra.Command, []string) error {
	return c.administerOn(c.openOutsideTarget, func(ctx context.Context, on *adminTarget, _ []string) (string, error) {
		return on.chosenWorkspace(ctx)
	}, work)
}

// administerNamedOutside is administerOutside for a command whose first argument names the workspace.
func (c *command) administerNamedOutside(work administerWork) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		open := func(ctx context.Context, cmd *cobra.Command) (*adminTarget, error) {
			return c.openOutside(ctx, cmd, args[0])
		}
		return c.administerOn(open, func(context.Context, *adminTarget, []string) (string, error) { return args[0], nil }, work)(cmd, args)
	}
}

// openTarget finds the target of a command.
type openTarget func(context.Context, *cobra.Command) (*adminTarget, error)

// chooseWorkspace returns the workspace of a command.
type chooseWorkspace func(context.Context, *adminTarget, []string) (string, error)

func (c *command) administerIn(choose chooseWorkspace, work administerWork) func(*cobra.Command, []string) error {
	return c.administerOn(c.openAdminTarget, choose, work)
}

func (c *command) administerOn(open openTarget, choose chooseWorkspace, work administerWork) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		if err := checkUTF8(cmd); err != nil {
			return err
		}
		ctx, stop := c.interruptContext(cmd.Context())
		defer stop()
		on, err := open(ctx, cmd)
		if err != nil {
			return err
		}
		defer on.close()
		a := &administration{onDatabase: on.stores != nil}
		if a.slug, err = choose(ctx, on, args); err != nil {
			return err
		}
		remote, err := client.New(on.options(a.slug))
		if err != nil {
			return invalidTarget(err)
		}
		defer remote.Close()
		a.Admin = remote.Admin()
		return explainAdminError(work(actor.With(ctx, c.systemUser()), a, args))
	}
}

// adminTarget is where the commands for administrators work: on a server if PARLEY_URL and
// PARLEY_API_KEY are set, else on the database. PARLEY_DATABASE_URL takes precedence: with it, as
// serve --dev writes it for a shell, the commands reach every workspace, and a key reaches one.
type adminTarget struct {
	config app.Config
	stores *app.Stores // nil: a server
	by     string
}

func (c *command) openAdminTarget(ctx context.Context, cmd *cobra.Command) (*adminTarget, error) {
	cfg, err := c.loadSettings(cmd)
	if err != nil {
		return nil, err
	}
	on := &adminTarget{config: cfg, by: c.actorName()}
	if cfg.Source("PARLEY_URL") == "" || cfg.APIKey == "" || cfg.DevURL != "" {
		on.stores, err = app.OpenStores(ctx, cfg, c.devDir(), cfg.Logger(c.Stderr))
	}
	return on, err
}

// openOutsideTarget is openAdminTarget, but prefers the server of serve --dev to its database for the
// workspace of its key: only that process reaches the demo's tool servers and knows its settings.
func (c *command) openOutsideTarget(ctx context.Context, cmd *cobra.Command) (*adminTarget, error) {
	return c.openOutside(ctx, cmd, "")
}

// openOutside is openOutsideTarget for a workspace; "" is that of the settings.
func (c *command) openOutside(ctx context.Context, cmd *cobra.Command, workspace string) (*adminTarget, error) {
	cfg, err := c.loadSettings(cmd)
	if err != nil {
		return nil, err
	}
	cfg.Workspace = cmp.Or(workspace, cfg.Workspace)
	if cfg.Source("PARLEY_URL") != "" && cfg.APIKey != "" {
		if cfg.Workspace == c.envValue("PARLEY_WORKSPACE") {
			return &adminTarget{config: cfg, by: c.actorName()}, nil
		}
		return c.openAdminTarget(ctx, cmd)
	}
	dev, err := app.ReadDevEnv(c.devDir())
	if err != nil || cfg.DatabaseURL != "" || dev.APIKey == "" || dev.CheckURL() != nil ||
		cfg.Workspace != "" && cfg.Workspace != dev.Workspace {
		return c.openAdminTarget(ctx, cmd)
	}
	cfg.URL, cfg.APIKey, cfg.Workspace = dev.URL, app.Secret(dev.APIKey), dev.Workspace
	return &adminTarget{config: cfg, by: c.actorName()}, nil
}

func (on *adminTarget) close() {
	if on.stores != nil {
		on.stores.Close()
	}
}

func (on *adminTarget) options(workspace string) client.Options {
	opt := client.Options{URL: on.config.URL, Key: on.config.APIKey.Reveal(), Workspace: workspace,
		UserAgent: "parley/" + app.ThisBuild().Version}
	if on.stores != nil {
		opt.URL, opt.Key, opt.HTTP = app.AdministrationURL, "", on.stores.Administration(on.by)
	}
	return opt
}

// chosenWorkspace returns the workspace of --workspace or PARLEY_WORKSPACE or, on the database, the
// only one.
func (on *adminTarget) chosenWorkspace(ctx context.Context) (string, error) {
	if on.stores != nil {
		w, err := selectWorkspace(ctx, &admin{Stores: on.stores, Config: on.config})
		return w.Slug, err
	}
	if on.config.Workspace == "" {
		return "", &problem{Exit: exitUsage, Code: "USAGE", What: "Which workspace?", Why: "PARLEY_WORKSPACE is not set.",
			Do: "Set it, or name one with --workspace."}
	}
	return on.config.Workspace, nil
}

// explainAdminError converts a rejection by the administration API: the command line is at fault, on
// a server as on the database.
func explainAdminError(err error) error {
	e, ok := errors.AsType[*client.Error](err)
	if !ok || e.Code == "" {
		return err
	}
	switch e.Status {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusTooManyRequests:
		return err
	case http.StatusInternalServerError:
		return &problem{Exit: exitFailed, Code: "FAILED", What: "The command failed.", Why: e.Message, RequestID: e.RequestID}
	case http.StatusServiceUnavailable:
		return &problem{Exit: exitUnavailable, Code: e.Code, What: strings.TrimSuffix(e.Message, " "+tryAgain), Do: tryAgain,
			RequestID: e.RequestID}
	}
	p := &problem{Exit: exitUsage, Code: e.Code, What: e.Message, Do: "Correct the command and run it again."}
	if len(e.Violations) > 1 {
		lines := make([]string, len(e.Violations))
		for i, v := range e.Violations {
			lines[i] = v.Message
		}
		p.What = strings.Join(lines, "\n")
	}
	if e.Code == "PRECONDITION_FAILED" {
		p.Exit, p.Do = exitFailed, "Run the command again, on what it is now."
	}
	return p
}

func invalidTarget(err error) error {
	return &problem{Exit: exitUsage, Code: "CONFIGURATION", What: "Invalid server address or key.", Why: errorSentence(err),
		Do: "Correct PARLEY_URL or PARLEY_API_KEY; `parley config list` shows where they come from."}
}

// isNotFound reports whether the workspace lacks the object of a call.
func isNotFound(err error) bool {
	e, ok := errors.AsType[*client.Error](err)
	return ok && e.Status == http.StatusNotFound && e.Code != "WORKSPACE_NOT_FOUND"
}
