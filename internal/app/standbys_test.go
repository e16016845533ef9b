//go:build unix

package app_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/parley-server/parley/internal/app"
	"github.com/parley-server/parley/internal/testing/dbtest"
	"github.com/parley-server/parley/internal/testing/slow"
	"github.com/parley-server/parley/internal/testing/wait"
)

// TestCommitsThatWaitForStandbysAreLogged stops the standby while a message is stored.
func TestCommitsThatWaitForStandbysAreLogged(t *testing.T) {
	t.Parallel()
	slow.Test(t, "starts PostgreSQL")
	primary, standby := dbtest.NewServer(t), dbtest.NewServer(t)
	standby.FollowPrimary(primary)
	dsn, log := primary.Empty(), &lines{}
	at, _, err := serve(t, app.Options{Log: log.logger()}, "DATABASE_URL="+dsn, "PARLEY_LISTEN=127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	slug, _, key := newKey(t, dsn)
	standby.Stop()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, at+"/api/v1/workspaces/"+slug+"/messages", strings.NewReader(`{"command":"hello"}`))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+key)
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		if res, err := http.DefaultClient.Do(req); err == nil {
			res.Body.Close()
		}
	}()
	until(t, func() bool { return len(log.find("commits wait for synchronous standbys", "level", "ERROR")) == 1 })
	standby.Start()
	wait.Receive(t, "the response", answered)
	until(t, func() bool { return len(log.find("no commit waits for standbys any more", "level", "INFO")) == 1 })
	if n := len(log.find("database lost")); n > 0 {
		t.Errorf("the database was reported as lost %d times", n)
	}
}
