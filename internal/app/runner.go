package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/egress"
	"github.com/parley-server/parley/internal/store/toolset"
	"github.com/parley-server/parley/internal/store/vault"
	"github.com/parley-server/parley/internal/tool"
	"github.com/parley-server/parley/internal/tool/attach"
	"github.com/parley-server/parley/internal/tool/files"
	"github.com/parley-server/parley/internal/tool/httptool"
	"github.com/parley-server/parley/internal/tool/knowledge"
	"github.com/parley-server/parley/internal/tool/mcpauth"
	"github.com/parley-server/parley/internal/tool/mcptool"
	"github.com/parley-server/parley/internal/tool/shell"
	"github.com/parley-server/parley/internal/tool/web"
	"github.com/parley-server/parley/internal/toolenv"
	"github.com/parley-server/parley/internal/toolenv/sandbox"
	"github.com/parley-server/parley/internal/toolenv/workdir"
)

// buildRunner creates the runner of tools.
func (s *service) buildRunner(ctx context.Context, guard *egress.Guard) error {
	if err := s.buildSandbox(ctx); err != nil {
		return err
	}
	s.folders = workdir.New(s.pool, workdir.Options{Log: s.Log, Give: s.giveFolder})
	s.runner = toolenv.New(toolenv.Config{
		Pool: s.pool, Guard: guard, Vault: s.secrets, Folders: s.folders, Files: s.files, Sandbox: s.box, Remote: s.remote,
		Dir: s.Config.RunnerDir, Commands: s.Config.Commands, Audit: time.Duration(s.Config.AuditRetention), Log: s.Log, Metrics: s.metrics,
	})
	return nil
}

// giveFolder changes the owner of a folder to the user that runs commands.
func (s *service) giveFolder(dir string) error {
	if s.box == nil {
		return nil
	}
	return s.box.Give(dir)
}

// freeUsers is the number of user ids that development mode and a runner reserve for commands.
const freeUsers = 64

// buildSandbox creates the sandbox if one is possible and needed.
func (s *service) buildSandbox(ctx context.Context) error {
	if s.Config.Workers == 0 {
		return nil
	}
	if s.Config.Sandbox == "off" {
		s.banner.printStep("sandbox", "off: the agent has no commands", 0)
		return nil
	}
	if s.Config.Runner != "" {
		return s.buildRemote(ctx)
	}
	cfg := s.Config.withSandboxUsers(s.DevDir != "")
	if n := cfg.SandboxUID.Len(); n > 0 && n < cfg.Commands {
		s.Log.WarnContext(ctx, "commands that run at the same time share user ids: PARLEY_SANDBOX_UID has fewer ids than PARLEY_COMMANDS",
			"ids", n, "commands", cfg.Commands)
	}
	box, err := openSandbox(ctx, cfg)
	unavailable, ok := errors.AsType[*sandbox.Unavailable](err)
	switch {
	case ok && s.Config.Sandbox != "auto":
		return &StartError{Why: "PARLEY_SANDBOX is " + s.Config.Sandbox + ", and commands cannot be contained here: " + unavailable.Reason,
			Do: unavailable.Remedy}
	case ok:
		if s.DevDir == "" { // otherwise the banner reports it
			s.Log.WarnContext(ctx, "the tool bash is disabled; other tools work", "reason", unavailable.Reason, "remedy", unavailable.Remedy)
		}
		s.banner.printStep("sandbox", "none, so the agent has no commands: "+unavailable.Reason, 0)
		s.banner.printStep("", unavailable.Remedy, 0)
		return nil
	case err != nil:
		return fmt.Errorf("make the sandbox: %w", err)
	}
	s.box = box
	s.banner.printStep("sandbox", "bubblewrap: the agent can run commands", 0)
	return s.reportLimits(ctx)
}

// reportLimits logs whether the memory of commands is only watched, and fails if that is not
// sufficient.
func (s *service) reportLimits(ctx context.Context) error {
	unlimited, ok := errors.AsType[*sandbox.Unavailable](s.box.Limited())
	if !ok {
		return nil
	}
	if s.Config.Sandbox == "require-limits" {
		_ = s.box.Close()
		return &StartError{Why: "PARLEY_SANDBOX is require-limits. " + unlimited.Reason, Do: unlimited.Remedy}
	}
	if s.DevDir == "" { // otherwise the banner reports it
		s.Log.InfoContext(ctx, "the memory of commands is watched, not limited by the kernel", "reason", unlimited.Reason, "remedy",
			unlimited.Remedy)
	}
	s.banner.printStep("", "their memory is watched, not limited by the kernel; see parley sandbox check", 0)
	return nil
}

// withSandboxUsers reserves free user ids for commands if pick, and root runs this process without any.
func (c Config) withSandboxUsers(pick bool) Config {
	if pick && os.Geteuid() == 0 && c.SandboxUID.Len() == 0 {
		c.SandboxUID = sandbox.FreeUsers(freeUsers)
	}
	return c
}

// OpenSandbox creates the sandbox of a server with these settings, or of a runner or serve --dev if
// they name no database: as root, these two pick free user ids. It fails with *sandbox.Unavailable. The
// caller closes it.
func OpenSandbox(ctx context.Context, cfg Config) (*sandbox.Sandbox, error) {
	return openSandbox(ctx, cfg.withSandboxUsers(cfg.DatabaseURL == ""))
}

func openSandbox(ctx context.Context, cfg Config) (*sandbox.Sandbox, error) {
	return sandbox.Open(ctx, sandbox.Config{Dir: cfg.RunnerDir, Users: cfg.SandboxUID, Root: cfg.SandboxRoot, Transparent: cfg.Transparent})
}

// agentTools returns the agent's tools in a run.
func (s *service) agentTools(run *toolenv.Run) []tool.Tool {
	return append(knowledge.Tools(s.wiki, run), shell.Tool(run), web.Tool(run), files.Tool(run), attach.Tool(s.files, run))
}

// ownTools returns the tools that a workspace has added, in a run.
func (s *service) ownTools(ctx context.Context, workspace uuid.UUID, run *toolenv.Run) ([]tool.Tool, error) {
	servers, err := s.toolset.Usable(ctx, workspace)
	if err != nil {
		return nil, err
	}
	record := mcptool.Record{Store: s.toolset, Workspace: workspace, Log: s.Log}
	tools, err := httptool.Tools(run, record, s.httpSender(), servers)
	grants := s.connector.Of(workspace, func(ctx context.Context) (string, error) { return s.toolset.TurnHolder(ctx, run.TurnID()) })
	return append(tools, mcptool.Tools(run, record, grants, servers)...), err
}

// httpSender signs the requests of HTTP tools.
func (s *service) httpSender() httptool.Sender {
	return httptool.Sender{Sign: s.callbacks.SignRequest, Base: s.baseURL()}
}

// httpProbeOf calls HTTP tools for administrators.
func httpProbeOf(runner *toolenv.Runner, sender httptool.Sender) httptool.Probe {
	return httptool.Probe{Sender: sender, Open: func(workspace uuid.UUID) httptool.ClosingEnv { return runner.OpenProbe(workspace) }}
}

// probeOf connects to tool servers for administrators.
func probeOf(runner *toolenv.Runner, connector *mcpauth.Service) mcptool.Probe {
	return mcptool.Probe{Open: func(workspace uuid.UUID) mcptool.ClosingEnv { return runner.OpenProbe(workspace) }, Grants: connector.OfCaller}
}

// newConnector returns the connections of tool servers. base is the public address of the service.
func newConnector(store *toolset.Store, runner *toolenv.Runner, keys *vault.Keyring, base string, log *slog.Logger) *mcpauth.Service {
	return &mcpauth.Service{Store: store, Keys: keys, Base: strings.TrimSuffix(base, "/"), Log: log,
		Open: func(workspace uuid.UUID) mcpauth.Env { return runner.OpenProbe(workspace) }}
}

// toolSpecs describes the agent's tools.
func (s *service) toolSpecs() []tool.Spec {
	run := s.runner.Open(toolenv.Turn{})
	defer run.Close()
	var specs []tool.Spec
	for _, t := range s.agentTools(run) {
		specs = append(specs, t.Spec())
	}
	return specs
}
