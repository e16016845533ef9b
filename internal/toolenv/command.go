package toolenv

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/parley-server/parley/internal/tool"
	"github.com/parley-server/parley/internal/toolenv/remote"
	"github.com/parley-server/parley/internal/toolenv/sandbox"
	"github.com/parley-server/parley/internal/toolenv/workdir"
)

// Bash runs a command with bash in the session's folder, in the sandbox, and saves the folder. out
// receives the command's output, without any credential's value. killed is the reason why the
// command did not end by itself, or why the folder could not be saved.
func (x *Run) Bash(ctx context.Context, call tool.Call, command string, limit time.Duration, out io.Writer) (exit int, killed string,
	err error) {
	if why := x.Unavailable(); why != "" {
		return 0, "", tool.Refusal(why)
	}
	x.call = call.ID
	if err := x.openFolder(ctx); err != nil {
		return 0, "", err
	}
	net, err := x.openNetwork(ctx)
	if err != nil {
		return 0, "", err
	}
	if err := x.saveAttachments(ctx); err != nil {
		return 0, "", err
	}
	release, err := x.r.slots.Acquire(ctx, x.t.Workspace)
	if err != nil {
		return 0, "", err
	}
	x.dirty = true
	redacted := net.redact.Writer(out)
	res, err := x.runCommand(ctx, sandbox.Command{
		Argv:   []string{"/bin/bash", "--noprofile", "--norc", "-c", command},
		Env:    net.env,
		Folder: x.dir, Attachments: x.attachments,
		CA: net.run.CA(), Serve: net.run.Serve,
		Direct: &sandbox.Direct{DNS: net.run.ServeDNS, TLS: net.run.ServeTLS, Plain: net.run.ServePlain},
		Output: redacted,
		Limits: sandbox.Limits{Time: limit},
	})
	release()
	x.r.cfg.Metrics.Commands.WithLabelValues(commandOutcome(res.Result, err)).Inc()
	x.flushRefusals()
	if errors.Is(err, remote.ErrLost) {
		x.log.ErrorContext(ctx, "the outcome of a command is not known", "err", net.records.String(err.Error()))
		x.dropFolder()
		return 0, "", tool.Refusal(lostRunner)
	}
	if refused, ok := errors.AsType[*workdir.Refusal](err); ok {
		return 0, "", tool.Refusal(refused.Reason)
	}
	if failure, ok := errors.AsType[*sandbox.Failure](err); ok {
		x.log.ErrorContext(ctx, "the sandbox failed; the command did not run", "reason", net.records.String(failure.Reason))
		return 0, "", tool.Refusal("The sandbox failed, and the command did not run. Ask the administrator to look into the server's log.")
	}
	if err != nil {
		return 0, "", fmt.Errorf("run a command: %w", err)
	}
	if err := redacted.Close(); err != nil {
		return 0, "", fmt.Errorf("read the output: %w", err)
	}
	saved, err := x.saveFolder(ctx)
	refused, ok := errors.AsType[tool.Refusal](err)
	if err != nil && !ok {
		return 0, "", err
	}
	if res.Refused != "" {
		refused = tool.Refusal(res.Refused + " The next command finds the files as they were before this one.")
	}
	if refused != "" {
		return res.Exit, strings.TrimPrefix(res.Killed+"; "+string(refused), "; "), nil
	}
	if skipped := append(res.Skipped, saved.Skipped...); len(skipped) > 0 {
		fmt.Fprintf(out, "\n[not kept: %s]\n", strings.Join(skipped, ", "))
	}
	return res.Exit, res.Killed, nil
}

// lostRunner is the result of a command whose runner was lost.
const lostRunner = "interrupted, outcome unknown: the runner of the command was lost. " +
	"The files in /workspace are as they were before the command."

// runCommand runs a command in the sandbox of this process, or of the runner.
func (x *Run) runCommand(ctx context.Context, c sandbox.Command) (remote.Result, error) {
	if box := x.r.cfg.Sandbox; box != nil {
		res, err := box.Run(ctx, c)
		return remote.Result{Result: res}, err
	}
	return x.r.cfg.Remote.Run(ctx, x.t.Workspace, c)
}

// commandOutcome is how a command ended, for the metrics.
func commandOutcome(res sandbox.Result, err error) string {
	switch {
	case err != nil:
		return "failed"
	case res.Killed != "":
		return "killed"
	case res.Exit != 0:
		return "exit"
	}
	return "ok"
}
