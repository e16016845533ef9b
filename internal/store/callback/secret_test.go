package callback_test

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/parley-server/parley/internal/store/callback"
	"github.com/parley-server/parley/internal/testing/wait"
)

// delivered sends one report and returns it.
func (w *world) delivered(t *testing.T) received {
	t.Helper()
	n := w.register(t, address, nil)
	w.deliver(t, w.report(t, n.Turn, callback.Completed, 1))
	all := w.receiver.all()
	return all[len(all)-1]
}

func TestRotationKeepsTwoSecrets(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first, err := w.store.Secret(t.Context(), w.workspace)
	if err != nil {
		t.Fatal(err)
	}
	rotate := func(overlap time.Duration) string {
		t.Helper()
		s, err := w.store.Rotate(t.Context(), w.workspace, overlap)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	valid := func(r received, secret string) bool {
		hook, err := standardwebhooks.NewWebhook(secret)
		return err == nil && hook.Verify(r.body, r.header) == nil
	}
	second := rotate(time.Hour)
	r := w.delivered(t)
	if !valid(r, first) || !valid(r, second) || strings.Count(r.header.Get("webhook-signature"), "v1,") != 2 {
		t.Errorf("during the overlap: %s", r.header.Get("webhook-signature"))
	}
	third := rotate(time.Hour)
	if r := w.delivered(t); valid(r, first) || !valid(r, second) || !valid(r, third) {
		t.Errorf("after the second rotation: %s", r.header.Get("webhook-signature"))
	}
	fourth := rotate(0)
	if r := w.delivered(t); valid(r, second) || valid(r, third) || !valid(r, fourth) {
		t.Errorf("without an overlap: %s", r.header.Get("webhook-signature"))
	}
}

func TestSecretIsShownOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.delivered(t) // creates the secret without showing it
	secret, err := w.store.Secret(t.Context(), w.workspace)
	if err != nil {
		t.Fatal(err)
	}
	verify(t, secret, r)
	raw, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
	if err != nil || len(raw) != 32 || !strings.HasPrefix(secret, "whsec_") {
		t.Errorf("%d bytes, %v", len(raw), err)
	}
	if again, err := w.store.Secret(t.Context(), w.workspace); !errors.Is(err, callback.ErrShown) || again != "" {
		t.Errorf("again: %v", err)
	}
	var n int
	if err := w.pool.QueryRow(t.Context(), `SELECT count(*) FROM callback_secrets WHERE position($1::bytea IN secret) > 0`,
		raw).Scan(&n); err != nil || n != 0 {
		t.Errorf("%d rows contain the plain secret, %v", n, err)
	}
	other, session := w.tenant(t, "other")
	_ = session
	w.exec(t, `UPDATE callback_secrets SET workspace_id = $1`, other)
	if _, err := w.store.Rotate(t.Context(), w.workspace, time.Hour); err != nil {
		t.Error(err)
	}
	w.exec(t, `UPDATE callback_secrets SET shown = false`)
	if _, err := w.store.Secret(t.Context(), other); err == nil {
		t.Error("a secret opens in another workspace")
	}
}

// TestFirstSecretIsOne makes eight secrets at once.
func TestFirstSecretIsOne(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var wg sync.WaitGroup
	shown := make(chan string, 8)
	for range cap(shown) {
		wg.Go(func() {
			s, err := w.store.Secret(t.Context(), w.workspace)
			if err == nil {
				shown <- s
			} else if !errors.Is(err, callback.ErrShown) {
				t.Error(err)
			}
		})
	}
	wait.Until(t, "all goroutines", wg.Wait)
	var n int
	if err := w.pool.QueryRow(t.Context(), `SELECT count(*) FROM callback_secrets`).Scan(&n); err != nil || n != 1 || len(shown) != 1 {
		t.Errorf("%d secrets, shown %d times, %v", n, len(shown), err)
	}
}

func TestSecretsOfWorkspacesDiffer(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	other, _ := w.tenant(t, "other")
	a, err1 := w.store.Secret(t.Context(), w.workspace)
	b, err2 := w.store.Secret(t.Context(), other)
	if err1 != nil || err2 != nil || a == b {
		t.Error(fmt.Errorf("equal: %v, %v, %v", a == b, err1, err2))
	}
}
