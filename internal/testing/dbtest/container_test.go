package dbtest

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/parley-server/parley/internal/testing/slow"
)

// TestContainerProgramRuns points the program of the module container/ at a Docker daemon without
// images: it starts, connects to the daemon and names the image to pull.
func TestContainerProgramRuns(t *testing.T) {
	slow.Test(t, "starts PostgreSQL")
	daemon := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/images/json") {
			w.Header().Set("Content-Type", "application/json")
			io.WriteString(w, "[]")
		}
	}))
	t.Cleanup(daemon.Close)
	t.Setenv("DOCKER_HOST", "tcp://"+daemon.Listener.Addr().String())
	_, _, err := startContainer(t.Context())
	if err == nil || !strings.Contains(err.Error(), "docker pull postgres:") {
		t.Errorf("the program reports %v, want the image to pull", err)
	}
}
