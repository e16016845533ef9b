package session_test

import (
	"sync"
	"testing"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/session"
	"github.com/parley-server/parley/internal/testing/wait"
)

func TestOneCallerOneSession(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.Replica(t)
	var mu sync.Mutex
	ids := make(map[uuid.UUID]int)
	var wg sync.WaitGroup
	for range 12 {
		wg.Go(func() {
			err := s.Open(t.Context(), session.Ref{Workspace: w.Workspace.ID, CallerID: "same"}, func(tx *session.Tx) error {
				mu.Lock()
				defer mu.Unlock()
				ids[tx.SessionID()]++
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	wait.Until(t, "all goroutines", wg.Wait)
	if len(ids) != 1 {
		t.Fatalf("%d sessions for one caller", len(ids))
	}
}
