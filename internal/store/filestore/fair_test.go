package filestore_test

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/parley-server/parley/internal/store/filestore"
	"github.com/parley-server/parley/internal/testing/wait"
)

// TestHangingOriginsLeaveRoomForOthers lets one workspace request more files from a server that
// does not respond than are fetched at once, and then another workspace a file that is available.
func TestHangingOriginsLeaveRoomForOthers(t *testing.T) {
	t.Parallel()
	const places = 4
	asked, leave := make(chan struct{}, filestore.MaxFetching), make(chan struct{})
	w := origin(t, func(rw http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/here" {
			fmt.Fprint(rw, "Hello")
			return
		}
		asked <- struct{}{}
		select {
		case <-leave:
		case <-r.Context().Done():
		}
	}, nil)
	w.fetchers(places)
	other := w.tenant(t, "other")
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		close(leave)
		if err := wait.Receive(t, "the end", done); err != nil {
			t.Error(err)
		}
	})

	for range filestore.MaxFetching {
		w.ticket(t, w.from("https://example.com/hangs"))
	}
	for range places - 1 {
		select {
		case <-asked:
		case <-time.After(time.Minute):
			t.Fatal("the server was not called")
		}
	}
	began := time.Now()
	r := w.from("https://example.com/here")
	r.Workspace = other
	ticket := w.ticket(t, r)
	for time.Since(began) < 30*time.Second {
		f, err := w.Get(t.Context(), other, ticket.FileID)
		if err != nil {
			t.Fatal(err)
		}
		if f.Status == filestore.StatusReady {
			t.Logf("the other workspace's file was ready after %s", time.Since(began))
			return
		}
	}
	t.Errorf("the other workspace's file was not ready after %s", time.Since(began))
}
