package tracing

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/parley-server/parley/internal/outage"
)

// retryPause is the pause before the first repetition; it doubles.
const retryPause = time.Second

// client sends batches of spans. It implements otlptrace.Client in place of the exporter for HTTP of
// OpenTelemetry, which links gRPC and its gateway: 5.2 MB of the binary.
type client struct {
	set      *settings
	http     *http.Client
	failures *outage.Log
}

func newClient(set *settings, failures *outage.Log) *client {
	transport := &http.Transport{
		Proxy: http.ProxyFromEnvironment, TLSClientConfig: set.tls, ForceAttemptHTTP2: true,
		MaxIdleConns: 2, IdleConnTimeout: 90 * time.Second, TLSHandshakeTimeout: set.timeout,
	}
	return &client{set: set, failures: failures, http: &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }, // it would get the headers
	}}
}

// Start implements otlptrace.Client.
func (c *client) Start(context.Context) error { return nil }

// Stop implements otlptrace.Client.
func (c *client) Stop(context.Context) error {
	c.http.CloseIdleConnections()
	return nil
}

// UploadTraces implements otlptrace.Client. It reports its failures itself.
func (c *client) UploadTraces(ctx context.Context, spans []*tracepb.ResourceSpans) error {
	ctx, cancel := context.WithTimeout(ctx, c.set.timeout)
	defer cancel()
	body, err := c.encode(spans)
	if err == nil {
		err = c.upload(ctx, body)
	}
	// The time of the export is over, but the process may go on: this is an outage.
	c.failures.Note(context.WithoutCancel(ctx), err)
	return nil
}

// encode encodes a request. TracesData has the wire format of ExportTraceServiceRequest.
func (c *client) encode(spans []*tracepb.ResourceSpans) ([]byte, error) {
	data, err := proto.Marshal(&tracepb.TracesData{ResourceSpans: spans})
	if err != nil || !c.set.gzip {
		return data, err
	}
	var small bytes.Buffer
	w := gzip.NewWriter(&small)
	if _, err := w.Write(data); err != nil {
		return nil, err
	}
	err = w.Close()
	return small.Bytes(), err
}

// upload sends a request, again after a temporary failure, until ctx ends.
func (c *client) upload(ctx context.Context, body []byte) error {
	for pause := retryPause; ; pause *= 2 {
		again, asked, err := c.send(ctx, body)
		if err == nil || !again {
			return err
		}
		wait := time.NewTimer(max(pause, asked))
		select {
		case <-ctx.Done():
			wait.Stop()
			return err
		case <-wait.C:
		}
	}
}

// send makes one request. again reports whether a repetition can succeed, after the time that the
// receiver asks for.
func (c *client) send(ctx context.Context, body []byte) (again bool, asked time.Duration, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.set.endpoint, bytes.NewReader(body))
	if err != nil {
		return false, 0, err
	}
	req.Header.Set("User-Agent", "Parley")
	for name, value := range c.set.headers {
		req.Header.Set(name, value)
	}
	req.Header.Set("Content-Type", "application/x-protobuf")
	if c.set.gzip {
		req.Header.Set("Content-Encoding", "gzip")
	}
	res, err := c.http.Do(req)
	if err != nil {
		if outer, ok := errors.AsType[*url.Error](err); ok {
			err = outer.Err // the address can hold credentials
		}
		return true, 0, err
	}
	defer res.Body.Close()
	_, _ = io.CopyN(io.Discard, res.Body, 64<<10)
	switch res.StatusCode {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		seconds, _ := strconv.Atoi(res.Header.Get("Retry-After"))
		again, asked = true, time.Duration(max(0, seconds))*time.Second
	case http.StatusOK, http.StatusAccepted, http.StatusNoContent:
		return false, 0, nil
	}
	return again, asked, fmt.Errorf("the receiver answers HTTP %d", res.StatusCode)
}
