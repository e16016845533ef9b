// Package tracing records spans and exports them over OTLP/HTTP. The standard variables of
// OpenTelemetry configure it; names and attributes follow version 1.41.0 of its semantic conventions.
//
// It promises: without an endpoint there is no Tracer, and every call returns at once; an export never
// delays the caller, whatever the receiver does; spans of one turn share a trace, whichever replicas
// run it. It never exports messages, arguments or results unless the capture of content is switched
// on, and never secrets.
package tracing

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/google/uuid"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/parley-server/parley/internal/outage"
)

// schemaURL is the version of the conventions. It is the last one with those for generative AI.
const schemaURL = "https://opentelemetry.io/schemas/1.41.0"

// Tracer records spans. A nil Tracer records nothing.
type Tracer struct {
	provider *sdk.TracerProvider
	tracer   trace.Tracer
	content  bool
}

// Options configure a Tracer.
type Options struct {
	Log     *slog.Logger // nil discards
	Version string       // of the service
}

// New returns the Tracer that the variables of OpenTelemetry describe, or nil if they name no endpoint
// or disable traces. Its errors name a variable. The SDK itself reads the variables of the sampler, of
// the batches and of the limits from the environment of the process.
func New(ctx context.Context, getenv func(string) string, opt Options) (*Tracer, error) {
	set, err := readSettings(getenv)
	if err != nil || set == nil {
		return nil, err
	}
	log := opt.Log
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { log.Warn("traces", "err", err) }))
	exporter, err := otlptrace.New(ctx, newClient(set, outage.New(log, "export traces")))
	if err != nil {
		return nil, fmt.Errorf("start the exporter of traces: %w", err)
	}
	about, err := resource.New(ctx,
		resource.WithTelemetrySDK(),
		resource.WithAttributes(
			attribute.String("service.name", "parley"),
			attribute.String("service.version", opt.Version),
			attribute.String("service.instance.id", uuid.NewString())),
		resource.WithFromEnv())
	if err != nil {
		return nil, fmt.Errorf("OTEL_RESOURCE_ATTRIBUTES: %w", err)
	}
	var batch []sdk.BatchSpanProcessorOption
	if set.content { // a span can have 200 KB
		batch = append(batch, sdk.WithMaxQueueSize(256), sdk.WithMaxExportBatchSize(16))
	}
	provider := sdk.NewTracerProvider(sdk.WithBatcher(exporter, batch...), sdk.WithResource(about), sdk.WithIDGenerator(ids{}))
	return &Tracer{
		provider: provider, content: set.content,
		tracer: provider.Tracer("github.com/parley-server/parley", trace.WithInstrumentationVersion(opt.Version), trace.WithSchemaURL(schemaURL)),
	}, nil
}

// Shutdown exports the remaining spans and stops, at the latest when ctx ends.
func (t *Tracer) Shutdown(ctx context.Context) error {
	if t == nil {
		return nil
	}
	if err := t.provider.Shutdown(ctx); err != nil {
		return fmt.Errorf("export the last traces: %w", err)
	}
	return nil
}
