package client_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/parley-server/parley/client"
)

// TestAdministrationWaitsForItsQuota repeats a call over the quota of the key, with its body, and no
// other error.
func TestAdministrationWaitsForItsQuota(t *testing.T) {
	t.Parallel()
	var calls atomic.Int32
	requests := make(chan string, 8)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		requests <- r.URL.EscapedPath() + string(body)
		switch calls.Add(1) {
		case 1:
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(http.StatusTooManyRequests)
			_, _ = io.WriteString(w, `{"error":{"code":"RATE_LIMITED","message":"Too many."}}`)
		case 2:
			_, _ = io.WriteString(w, `{"data":{"name":"bash","rule":"deny"}}`)
		default:
			w.WriteHeader(http.StatusServiceUnavailable)
			_, _ = io.WriteString(w, `{"error":{"code":"UNAVAILABLE","message":"Away."}}`)
		}
	}))
	defer srv.Close()
	c, err := client.New(client.Options{URL: srv.URL, Workspace: "demo", Key: "k"})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	tool, err := c.Admin().PutToolRule(t.Context(), "..", "deny")
	if err != nil || tool.Rule == nil || *tool.Rule != "deny" {
		t.Errorf("%+v, %v", tool, err)
	}
	const sent = "/api/v1/workspaces/demo/tools/%2E%2E/rule" + `{"rule":"deny"}`
	if n := calls.Load(); n != 2 {
		t.Fatalf("%d requests", n)
	}
	for range 2 {
		if got := <-requests; got != sent {
			t.Errorf("sent %s", got)
		}
	}
	if _, err := c.Admin().Tools(t.Context()); err == nil || calls.Load() != 3 {
		t.Errorf("%d requests, %v", calls.Load(), err)
	}
	if _, err := c.Admin().PutToolRule(t.Context(), "", "deny"); err == nil || calls.Load() != 3 {
		t.Errorf("an empty name: %d requests, %v", calls.Load(), err)
	}
}
