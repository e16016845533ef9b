//go:build unix

package app_test

import (
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/parley-server/parley/internal/app"
	"github.com/parley-server/parley/internal/testing/dbtest"
	"github.com/parley-server/parley/internal/testing/slow"
	"github.com/parley-server/parley/internal/testing/wait"
)

// TestCommitsThatWaitForStandbysAreLogged stops the standby while messages are stored: one, and more
// than the pool has connections.
func TestCommitsThatWaitForStandbysAreLogged(t *testing.T) {
	t.Parallel()
	slow.Test(t, "starts PostgreSQL")
	for name, messages := range map[string]int{"one message": 1, "more than connections": 40} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			primary, standby := dbtest.NewServer(t), dbtest.NewServer(t)
			standby.FollowPrimary(primary)
			dsn, log := primary.Empty(), &lines{}
			at, _, err := serve(t, app.Options{Log: log.logger()}, "DATABASE_URL="+dsn+"&pool_max_conns=8", "PARLEY_LISTEN=127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			slug, _, key := newKey(t, dsn)
			standby.Stop()
			var sent sync.WaitGroup
			for range messages {
				sent.Go(func() { send(t, at+"/api/v1/workspaces/"+slug+"/messages", key) })
			}
			wait.For(t, "the log has the reason", func() bool {
				return len(log.find("commits wait for synchronous standbys", "level", "ERROR")) == 1
			})
			sent.Wait()
			if n := len(log.find("commits no longer wait for standbys")); n > 0 {
				t.Error("the end was logged without a standby")
			}
			standby.Start()
			wait.For(t, "the log has the end", func() bool {
				return len(log.find("commits no longer wait for standbys", "level", "INFO")) == 1
			})
			if n := len(log.find("database lost")); n > 0 {
				t.Errorf("the database was reported as lost %d times", n)
			}
		})
	}
}

// send sends a message, which may fail.
func send(t *testing.T, url, key string) {
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(`{"command":"hello"}`))
	if err != nil {
		t.Error(err)
		return
	}
	req.Header.Set("Authorization", "Bearer "+key)
	if res, err := http.DefaultClient.Do(req); err == nil {
		res.Body.Close()
	}
}
