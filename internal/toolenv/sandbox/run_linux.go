package sandbox

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Run runs a command and returns when it and all its descendants have ended. The error is a
// *Failure if the command did not begin, and context.Cause(ctx) if ctx ended it. A command that
// fails or is killed by a limit is not an error.
func (s *Sandbox) Run(ctx context.Context, c Command) (Result, error) {
	if ctx.Err() != nil {
		return Result{}, context.Cause(ctx)
	}
	if !s.direct {
		c.Direct = nil
	}
	if err := s.prepareFolder(c); err != nil {
		return Result{}, &Failure{Reason: err.Error()}
	}
	user, dismiss, err := s.assignUser(c)
	if err != nil {
		return Result{}, &Failure{Reason: err.Error()}
	}
	defer dismiss()
	limits := c.Limits.withDefaults(s.limits)
	began := time.Now()
	p, err := s.startProcess(c, limits, user)
	if err != nil {
		return Result{}, &Failure{Reason: err.Error()}
	}
	defer func() {
		if err := p.group.removeGroup(); err != nil {
			s.log.Warn("a control group is left; the next start removes it", "err", err)
		}
	}()
	defer p.output.Close()
	defer p.control.Close()
	defer context.AfterFunc(ctx, func() { p.killAll(context.Cause(ctx)) })()
	defer time.AfterFunc(limits.Time, func() { p.killAll(limit("killed after " + describeDuration(limits.Time))) }).Stop()

	if services, err := p.awaitCommand(listPorts(c)); err != nil {
		p.abandonStart(err)
	} else {
		p.serveUntilExit(ctx, c, limits, services)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	r := Result{Exit: p.exitCode(), Took: time.Since(began)}
	switch cause := p.cause.(type) {
	case nil:
		if r.Killed = limitOfSignal(r.Exit, limits); p.group.outOfMemory() {
			r.Killed = string(tooMuchMemory(limits))
		}
	case limit:
		r.Killed = string(cause)
	default:
		return Result{}, cause
	}
	return r, nil
}

// limit names the limit that killed a command.
type limit string

func (l limit) Error() string { return string(l) }

// serveUntilExit serves the command until it has ended.
func (p *process) serveUntilExit(ctx context.Context, c Command, l Limits, services []service) {
	var watching, serving sync.WaitGroup
	ctx, cancel := context.WithCancel(ctx)
	for _, s := range services {
		serving.Go(func() {
			if err := s.serve(ctx); err != nil && ctx.Err() == nil {
				p.killAll(fmt.Errorf("serve the command: %w", err))
			}
		})
	}
	process1, _ := pidOf(p.process1)
	watching.Go(func() { p.watchMemory(process1, l) })
	watching.Go(func() { p.watchFolder(process1, c.Folder, l) })
	watching.Go(func() { p.copyOutput(c.Output, l.Output) })
	p.waitForEnd()
	watching.Wait()
	cancel()
	closeAll(services)
	serving.Wait()
}

// abandonStart ends a process that did not become the command. Its output is bubblewrap's.
func (p *process) abandonStart(failed error) {
	p.killAll(nil)
	words, _ := io.ReadAll(io.LimitReader(p.output, 8<<10))
	p.waitForEnd()
	reason := failed.Error()
	if text := strings.TrimSpace(string(words)); text != "" {
		reason += ": " + text
	}
	p.killAll(&Failure{Reason: reason})
}

// copyOutput ends when no process can write any more. It drops output beyond the limit.
func (p *process) copyOutput(to io.Writer, max int64) {
	if to == nil {
		to = io.Discard
	}
	n, err := io.Copy(to, io.LimitReader(p.output, max))
	if err != nil {
		p.killAll(fmt.Errorf("write the output: %w", err))
	} else if n == max {
		if more, _ := io.CopyN(io.Discard, p.output, 1); more > 0 {
			p.killAll(limit("killed: its output passed " + describeSize(max)))
		}
	}
	_, _ = io.Copy(io.Discard, p.output)
}

// exitCode returns the command's exit code, which bubblewrap forwards.
func (p *process) exitCode() int {
	if code := p.cmd.ProcessState.ExitCode(); code >= 0 {
		return code
	}
	return 128 + int(unix.SIGKILL)
}

// limitOfSignal returns the limit that the kernel enforced with a signal, if any.
func limitOfSignal(exit int, l Limits) string {
	switch exit {
	case 128 + int(unix.SIGXCPU):
		return "killed: a process used the processor for more than " + describeDuration(l.CPU)
	case 128 + int(unix.SIGXFSZ):
		return "killed: a file grew past " + describeSize(l.File)
	}
	return ""
}
