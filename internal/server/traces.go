package server

import (
	"context"
	"fmt"
	"net/http"

	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/config"
	"godwit.dev/godwit/internal/outgoing"
	"godwit.dev/godwit/internal/server/secret"
	"godwit.dev/godwit/internal/server/senders"
	"godwit.dev/godwit/internal/tracing"
	"godwit.dev/godwit/internal/tracing/otlp"
)

// openTracing begins to export spans to a collector, if the settings name one.
func (d *Deps) openTracing() error {
	to, err := d.Config.Traces.TracesURL()
	if err != nil || to == "" {
		return err
	}
	header := http.Header{}
	if file := d.Config.Traces.HeadersFile; file != "" {
		text, err := secret.Read(d.Config, file)
		if err != nil {
			return fmt.Errorf("the headers for the collector cannot be read (--trace-headers-file): %w", err)
		}
		given, err := config.ParseHeaders(string(text))
		if err != nil {
			return fmt.Errorf("%s (--trace-headers-file): %w", file, err)
		}
		for name, value := range given {
			header.Set(name, value)
		}
	}
	trust, err := senders.Trust(d.Config.EndpointCA)
	if err != nil {
		return err
	}
	// There is one request at a time to one host, whatever proxy the environment names.
	transport := outgoing.New(&http.Transport{TLSClientConfig: trust, MaxIdleConns: 1, ForceAttemptHTTP2: true})
	d.spans = otlp.New(otlp.Options{URL: to, Header: header, Transport: transport, Logger: d.Log, Jitter: clock.NewJitter(clock.RandomSeed())})
	d.tracer = tracing.New(tracing.Options{Clock: d.Clock, Ratio: d.Config.Traces.Ratio, Processor: d.spans, Version: config.Version})
	d.OnStop("traces", func(ctx context.Context) error {
		defer transport.CloseIdleConnections()
		return d.spans.Shutdown(ctx)
	})
	return nil
}

// countSpans reports the numbers of spans; nil: tracing is off.
func (d *Deps) countSpans() func() (exported, dropped, failed int64) {
	if d.spans == nil {
		return nil
	}
	return d.spans.Counts
}
