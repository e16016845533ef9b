package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/parley-server/parley/client"
)

func (c *command) approvalsWatch() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "watch",
		Short: "watch for approvals and decide them here",
		Example: `  parley approvals watch
  parley approvals watch --json | while read -r line; do …; done`,
		Long: `Shows pending approvals and new ones until Ctrl-C. At a terminal it asks for each decision; without
one it prints each approval on a line of stdout.`,
		Args: nothing,
		RunE: c.runRemotely(func(ctx context.Context, remote *client.Client, _ []string) error {
			w := &watcher{c: c, remote: remote, seen: make(map[string]bool)}
			if err := w.showNew(ctx); err != nil {
				return err
			}
			fmt.Fprintln(c.Stderr, "Waiting for approvals. Press Ctrl-C to stop.")
			return c.pollServer(ctx, w.showNew)
		}),
	}
	c.decisionFlags(cmd)
	return cmd
}

// watcher shows the questions of a workspace as they arrive.
type watcher struct {
	c      *command
	remote *client.Client
	seen   map[string]bool // pending at the last poll
}

// showNew shows new questions, among the newest hundred.
func (w *watcher) showNew(ctx context.Context) error {
	page, err := w.remote.Approvals(ctx, client.ApprovalQuery{Status: "pending", Limit: 100})
	if err != nil {
		return err
	}
	before := w.seen
	w.seen = make(map[string]bool)
	for _, a := range page.Data {
		w.seen[a.ApprovalID] = true
	}
	for _, a := range slices.Backward(page.Data) {
		if before[a.ApprovalID] {
			continue
		}
		if err := w.showQuestion(ctx, a); err != nil {
			return err
		}
	}
	return nil
}

func (w *watcher) showQuestion(ctx context.Context, a client.Approval) error {
	switch {
	case w.c.json:
		line, err := json.Marshal(a.Raw)
		if err != nil {
			return fmt.Errorf("write the approval: %w", err)
		}
		_, err = fmt.Fprintf(w.c.Stdout, "%s\n", line)
		return err
	case !w.c.isAttended():
		_, err := fmt.Fprintf(w.c.Stdout, "%s  %s  %s  %s\n", a.CreatedAt.UTC().Format(time.TimeOnly), a.ApprovalID, a.Kind,
			briefQuestion(questionOf(a)))
		return err
	}
	return w.askQuestion(ctx, a)
}

// askQuestion asks a question, unless it was answered while another was open, and withdraws it when
// it is answered elsewhere.
func (w *watcher) askQuestion(ctx context.Context, a client.Approval) error {
	if waits, err := w.isPending(ctx, a.ApprovalID); err != nil || !waits {
		return err
	}
	open, closed := context.WithCancelCause(ctx)
	defer closed(nil)
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		for open.Err() == nil {
			select {
			case <-open.Done():
			case <-time.After(pollPause):
				if waits, err := w.isPending(open, a.ApprovalID); err == nil && !waits {
					closed(errClosed)
				}
			}
		}
	}()
	d, err := w.c.putQuestion(ctx, open, w.remote, questionOf(a), true)
	closed(nil)
	<-gone
	switch {
	case errors.Is(err, errLater):
		return nil
	case errors.Is(err, errClosed) || err == nil && d.Already:
		fmt.Fprintln(w.c.Stderr, "Another client decided it, or it expired.")
		return nil
	case err != nil:
		return err
	}
	fmt.Fprintln(w.c.Stderr, outcomeText(d.Status)+".")
	return nil
}

func (w *watcher) isPending(ctx context.Context, id string) (bool, error) {
	a, err := w.remote.Approval(ctx, id)
	return err == nil && a.Status == "pending", err
}

// pollPause is the time between two polls of the server.
const pollPause = time.Second

// pollServer calls f repeatedly until Ctrl-C, or until the server rejects it. It reports a
// transient error once.
func (c *command) pollServer(ctx context.Context, f func(context.Context) error) error {
	for failing := false; ; {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pollPause):
		}
		err := f(ctx)
		refused, isAnswer := errors.AsType[*client.Error](err)
		_, unreachable := errors.AsType[*client.Unreachable](err)
		passes := unreachable || isAnswer && (refused.Status == http.StatusTooManyRequests || refused.Status >= 500)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil && !passes:
			return err
		case err != nil && !failing:
			fmt.Fprintf(c.Stderr, "%s Retrying.\n", plainLine(errorSentence(err)))
		}
		failing = err != nil
	}
}
