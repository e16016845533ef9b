package toolenv

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/parley-server/parley/internal/tool"
	"github.com/parley-server/parley/internal/toolenv/sandbox"
)

// Bash runs a command with bash in the session's folder, in the sandbox, and saves the folder. out
// receives the command's output, without any credential's value. killed is the reason why the
// command did not end by itself, or why the folder could not be saved.
func (x *Run) Bash(ctx context.Context, call tool.Call, command string, limit time.Duration, out io.Writer) (exit int, killed string, err error) {
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
	res, err := x.r.cfg.Sandbox.Run(ctx, sandbox.Command{
		Argv:   []string{"/bin/bash", "--noprofile", "--norc", "-c", command},
		Env:    net.env,
		Folder: x.dir, Attachments: x.attachments,
		CA: net.run.CA(), Serve: net.run.Serve,
		Direct: &sandbox.Direct{DNS: net.run.ServeDNS, TLS: net.run.ServeTLS, Plain: net.run.ServePlain},
		Output: redacted,
		Limits: sandbox.Limits{Time: limit},
	})
	release()
	x.r.cfg.Metrics.Commands.WithLabelValues(commandOutcome(res, err)).Inc()
	x.flushRefusals()
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
	if refused, ok := errors.AsType[tool.Refusal](err); ok {
		return res.Exit, strings.TrimPrefix(res.Killed+"; "+string(refused), "; "), nil
	}
	if err != nil {
		return 0, "", err
	}
	if len(saved.Skipped) > 0 {
		fmt.Fprintf(out, "\n[not kept: %s]\n", strings.Join(saved.Skipped, ", "))
	}
	return res.Exit, res.Killed, nil
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
