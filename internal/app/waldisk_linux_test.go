package app_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/parley-server/parley/internal/testing/dbtest"
	"github.com/parley-server/parley/internal/testing/slow"
	"github.com/parley-server/parley/internal/testing/wait"
)

// TestFullDiskOfTheWriteAheadLog removes the space for PostgreSQL's log while clients send
// messages, each under a key of its own until it is accepted. Every request gets a response, 503 if
// the message was not stored, and in the end every message has one turn.
func TestFullDiskOfTheWriteAheadLog(t *testing.T) {
	t.Parallel()
	slow.Test(t, "fills a disk")
	server := dbtest.NewServer(t, "min_wal_size=32MB", "max_wal_size=48MB")
	disk := server.WALOnDisk(96)
	b := newBridge(t, server.DSN())
	at := b.replica(t, b.dsn, "PARLEY_MESSAGES_PER_MINUTE=1000000", "PARLEY_CALLS_PER_MINUTE=1000000")
	b.awaitReady(t, at, http.StatusOK, "")

	stop := make(chan struct{})
	var clients sync.WaitGroup
	sent := make([]int, 4)
	for c := range sent {
		clients.Go(func() {
			for stopped := false; !stopped; {
				b.insist(t, at, fmt.Sprintf("client-%d-%d", c, sent[c]))
				sent[c]++
				select {
				case <-stop:
					stopped = true
				case <-time.After(50 * time.Millisecond): // or the turns would not keep up
				}
			}
		})
	}
	for range 3 {
		disk.Fill()
		b.awaitReady(t, at, http.StatusServiceUnavailable, "")
		disk.Free()
		b.awaitReady(t, at, http.StatusOK, "")
	}
	close(stop)
	wait.Until(t, "the clients", clients.Wait)

	want := 0
	for _, n := range sent {
		want += n
	}
	wait.For(t, "every message has one answer", func() bool {
		var turns, done int
		err := b.pool.QueryRow(t.Context(), `SELECT count(*), count(*) FILTER (WHERE state = 'completed') FROM turns`).Scan(&turns, &done)
		if err == nil && turns != want {
			t.Fatalf("%d messages were accepted, there are %d turns", want, turns)
		}
		return err == nil && done == want
	})
	t.Logf("%d messages", want)
}

// insist sends a message until it is accepted. Every request must get a response.
func (b *bridge) insist(t *testing.T, replica, key string) {
	for ; ; <-time.After(10 * time.Millisecond) {
		began := time.Now()
		status, text, err := b.post(t.Context(), replica, key)
		if took := time.Since(began); took > time.Second {
			t.Logf("%s: %d after %v: %s", key, status, took, text)
		}
		switch {
		case err != nil:
			t.Errorf("%s has no answer: %v", key, err)
			return
		case status == http.StatusOK:
			return
		case status != http.StatusServiceUnavailable || !strings.Contains(text, `"code":"UNAVAILABLE"`):
			t.Errorf("%s: %d %s", key, status, text)
			return
		}
	}
}

// post sends a message and returns the status and, unless it was accepted, the body.
func (b *bridge) post(ctx context.Context, replica, key string) (status int, text string, err error) {
	ctx, cancel := context.WithTimeout(ctx, linkLimit)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, replica+"/api/v1/workspaces/w/messages",
		strings.NewReader(`{"command":"hello"}`))
	if err != nil {
		return 0, "", err
	}
	req.Header.Set("Authorization", "Bearer "+b.key)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Idempotency-Key", key)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer res.Body.Close()
	if res.StatusCode == http.StatusOK {
		return res.StatusCode, "", nil
	}
	body, err := io.ReadAll(res.Body)
	return res.StatusCode, string(body), err
}

// TestFullDiskIsNamed lets PostgreSQL reject a message as it does when a table cannot grow.
func TestFullDiskIsNamed(t *testing.T) {
	t.Parallel()
	b := newBridge(t, dbtest.DSN(t))
	at := b.replica(t, b.dsn)
	exec(t, b.dsn,
		`CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'no space' USING ERRCODE = 'disk_full'; END $$;
		CREATE TRIGGER refuse BEFORE INSERT ON turns FOR EACH ROW EXECUTE FUNCTION refuse()`)
	status, text, err := b.post(t.Context(), at, "refused")
	if err != nil || status != http.StatusServiceUnavailable || !strings.Contains(text, "no disk space left") {
		t.Errorf("%d %s %v", status, text, err)
	}
}
