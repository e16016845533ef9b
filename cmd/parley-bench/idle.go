package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"
)

// idleScenario opens many streams of turns that wait for an approval, and reports the server's
// memory per stream once they have been quiet for a while. That includes the server's garbage:
// nothing is collected for the figure. Then a load runs beside them: the streams must not slow it
// down, and they must still be open afterwards.
func idleScenario(streams int, after time.Duration, beside load, ratios ...ratio) scenario {
	return scenario{
		Workload: "idle", Case: fmt.Sprintf("%d streams, %v after attaching", streams, after), Modes: []string{Service}, ratios: ratios,
		run: func(ctx context.Context, b *bench, mode string) (Figures, error) {
			return idleOnce(ctx, b, mode, streams, after, beside)
		},
	}
}

const openAtOnce = 32 // connections that are opened at once

func idleOnce(ctx context.Context, b *bench, mode string, streams int, wait time.Duration, beside load) (f Figures, err error) {
	w, err := b.open(ctx, mode, beside.streams)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, w.close()) }()
	sessions, err := seedWaiting(ctx, w, streams)
	if err != nil {
		return nil, err
	}
	if err := warmUp(ctx, w.client, sessions); err != nil {
		return nil, err
	}
	before, err := w.children[0].ask("figures")
	if err != nil {
		return nil, err
	}
	conns, err := openAll(ctx, w.client, sessions)
	defer func() {
		for _, c := range conns {
			if c != nil {
				c.Close()
			}
		}
	}()
	if err != nil {
		return nil, err
	}
	sleep(ctx, wait)
	after, err := w.children[0].ask("figures")
	if err != nil {
		return nil, err
	}
	if f, err = beside.on(ctx, w); err != nil {
		return nil, fmt.Errorf("beside %d idle streams: %w", streams, err)
	}
	for i, c := range conns {
		if err := checkSilent(c); err != nil {
			return nil, fmt.Errorf("idle stream %d of %d: %w", i, streams, err)
		}
	}
	f[Streams] = float64(len(conns))
	f[Memory] = float64(after.Bytes-before.Bytes) / float64(streams)
	return f, nil
}

// warmUp opens and closes some streams, so that the server has its connections to the database
// before the measurement.
func warmUp(ctx context.Context, c *client, sessions []string) error {
	conns, err := openAll(ctx, c, sessions[:min(len(sessions), 4*openAtOnce)])
	for _, conn := range conns {
		if conn != nil {
			conn.Close()
		}
	}
	return err
}

// openAll attaches a reader to every session and waits for its first frames.
func openAll(ctx context.Context, c *client, sessions []string) ([]*connection, error) {
	conns := make([]*connection, len(sessions))
	errs := make([]error, openAtOnce)
	var wg sync.WaitGroup
	for k := range openAtOnce {
		wg.Go(func() {
			for i := k; i < len(sessions); i += openAtOnce {
				conn, err := c.resume(ctx, sessions[i], "0")
				if err != nil {
					errs[k] = fmt.Errorf("open stream %d: %w", i, err)
					return
				}
				conns[i] = conn
				for _, want := range []string{"open", "tool_use"} {
					if frame, err := conn.Next(); err != nil || frame.Event != want {
						errs[k] = fmt.Errorf("open stream %d: frame %q instead of %s, %w", i, frame.Event, want, err)
						return
					}
				}
			}
		})
	}
	wg.Wait()
	return conns, errors.Join(errs...)
}

// checkSilent checks that a stream is open and sends nothing.
func checkSilent(c *connection) error {
	if err := c.SetReadDeadline(time.Now().Add(2 * time.Millisecond)); err != nil {
		return err
	}
	frame, err := c.Next()
	switch {
	case err == nil:
		return fmt.Errorf("a frame %s came", frame.Event)
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil
	}
	return fmt.Errorf("it is not open any more: %w", err)
}

// seedWaiting creates sessions whose turn waits for an approval, all at once: one by one, ten
// thousand would take longer than the run.
func seedWaiting(ctx context.Context, w *world, n int) (ids []string, err error) {
	err = w.pool.QueryRow(ctx, `
WITH made AS (
    SELECT gen_random_uuid() AS session, gen_random_uuid() AS turn FROM generate_series(1, $2)
), s AS (
    INSERT INTO sessions (id, workspace_id, turn_id, last_ord) SELECT session, $1, turn, 1 FROM made
), t AS (
    INSERT INTO turns (id, session_id, workspace_id, state, max_response_seconds, max_turns)
    SELECT turn, session, $1, 'waiting', 600, 50 FROM made
), e AS (
    INSERT INTO events (session_id, turn_id, at, delta, ord, kind, data)
    SELECT session, turn, now(), false, 1, 'tool_use', '{"v":1,"tool":"bench","summary":"waits"}' FROM made
)
SELECT array_agg(session::text) FROM made`, w.workspace.ID, n).Scan(&ids)
	if err != nil {
		return nil, fmt.Errorf("make sessions that wait: %w", err)
	}
	_, err = w.pool.Exec(ctx, `UPDATE sessions s SET last_seq = e.seq FROM events e WHERE e.session_id = s.id AND s.last_seq = 0`)
	return ids, err
}
