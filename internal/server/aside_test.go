package server

import (
	"bytes"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/parley-server/parley/internal/metrics"
)

func TestAsideReturnsTheError(t *testing.T) {
	t.Parallel()
	want := errors.New("refused")
	if err := Aside(func() error { return want }); err != want {
		t.Errorf("error %v", err)
	}
	if err := Aside(func() error { return nil }); err != nil {
		t.Errorf("error %v", err)
	}
}

func explode() error { panic("boom") }

// TestPanicAsideIsAnswered lets a function panic in its own goroutine: the request gets a response,
// and the log shows where the panic was.
func TestPanicAsideIsAnswered(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	s := &Server{Config: Config{Log: slog.New(slog.NewTextHandler(&log, nil)), Metrics: metrics.New()}}
	w := httptest.NewRecorder()
	handler := s.Handler(func(http.ResponseWriter, *http.Request) error { return Aside(explode) })
	handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "http://127.0.0.1/", nil))
	if w.Code != http.StatusInternalServerError || !strings.Contains(log.String(), "panic=boom") || !strings.Contains(log.String(),
		"server.explode") {
		t.Errorf("status %d, log %s", w.Code, &log)
	}
}
