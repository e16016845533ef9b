package app

import (
	"context"
	"os"

	"github.com/parley-server/parley/internal/tracing"
)

// startTracing begins to export traces, if the variables of OpenTelemetry ask for it. A mistake in
// them is logged: the service does not depend on traces.
func (s *service) startTracing(ctx context.Context) {
	var err error
	if s.tracer, err = tracing.New(ctx, os.Getenv, tracing.Options{Log: s.Log, Version: ThisBuild().Version}); err != nil {
		s.Log.WarnContext(ctx, "traces are not exported", "err", err)
	} else if s.tracer != nil {
		s.Log.InfoContext(ctx, "traces are exported")
	}
}

// stopTracing exports the last spans.
func (s *service) stopTracing(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTime)
	defer cancel()
	if err := s.tracer.Shutdown(ctx); err != nil {
		s.Log.WarnContext(ctx, "spans are lost", "err", err)
	}
}
