package tracing

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"
)

// The protocol of the exporter, the only one.
const protocol = "http/protobuf"

// settings are the variables that this package reads itself.
type settings struct {
	endpoint string
	headers  map[string]string
	timeout  time.Duration
	gzip     bool
	tls      *tls.Config // nil: the system's
	content  bool
}

// readSettings reads the variables of OpenTelemetry; nil if they do not ask for traces.
func readSettings(getenv func(string) string) (*settings, error) {
	own := func(name string) string { return strings.TrimSpace(getenv("OTEL_EXPORTER_OTLP_" + name)) }
	specific := func(name string) string { return cmp.Or(own("TRACES_"+name), own(name)) }
	set := &settings{endpoint: own("TRACES_ENDPOINT"), timeout: 10 * time.Second}
	if base := own("ENDPOINT"); set.endpoint == "" && base != "" {
		set.endpoint = strings.TrimSuffix(base, "/") + "/v1/traces"
	}
	if set.endpoint == "" || isTrue(getenv("OTEL_SDK_DISABLED")) {
		return nil, nil
	}
	switch exporter := strings.TrimSpace(getenv("OTEL_TRACES_EXPORTER")); exporter {
	case "", "otlp":
	case "none":
		return nil, nil
	default:
		return nil, fmt.Errorf("OTEL_TRACES_EXPORTER is %q. Use otlp or none", exporter)
	}
	if p := specific("PROTOCOL"); p != "" && p != protocol {
		return nil, fmt.Errorf("OTEL_EXPORTER_OTLP_PROTOCOL is %q. Use %s, which collectors receive on port 4318", p, protocol)
	}
	if u, err := url.Parse(set.endpoint); err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, fmt.Errorf("the OTLP endpoint is not an http or https address. Use a value such as http://127.0.0.1:4318")
	}
	if text := specific("TIMEOUT"); text != "" {
		ms, err := strconv.Atoi(text)
		if err != nil || ms <= 0 {
			return nil, fmt.Errorf("OTEL_EXPORTER_OTLP_TIMEOUT is %q. Use a number of milliseconds", text)
		}
		set.timeout = time.Duration(ms) * time.Millisecond
	}
	switch method := specific("COMPRESSION"); method {
	case "", "none":
	case "gzip":
		set.gzip = true
	default:
		return nil, fmt.Errorf("OTEL_EXPORTER_OTLP_COMPRESSION is %q. Use gzip or none", method)
	}
	set.content = capturesContent(getenv("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"))
	var err error
	if set.headers, err = parseHeaders(specific("HEADERS")); err != nil {
		return nil, err
	}
	set.tls, err = readCertificates(specific("CERTIFICATE"), specific("CLIENT_CERTIFICATE"), specific("CLIENT_KEY"))
	return set, err
}

func isTrue(text string) bool { return strings.EqualFold(strings.TrimSpace(text), "true") }

// capturesContent reports whether spans may contain messages. The conventions know a truth value and
// the names of places.
func capturesContent(text string) bool {
	switch strings.ToLower(strings.TrimSpace(text)) {
	case "true", "span_only", "span_and_event":
		return true
	}
	return false
}

// parseHeaders parses the list a=b,c=d, whose parts are percent-encoded. Its errors do not quote it: a
// header can be a credential.
func parseHeaders(list string) (map[string]string, error) {
	headers := make(map[string]string)
	for i, pair := range strings.Split(list, ",") {
		if strings.TrimSpace(pair) == "" {
			continue
		}
		name, value, ok := strings.Cut(pair, "=")
		name, err := url.PathUnescape(strings.TrimSpace(name))
		value, bad := url.PathUnescape(strings.TrimSpace(value))
		if !ok || err != nil || bad != nil || name == "" || strings.ContainsAny(value, "\r\n") {
			return nil, fmt.Errorf("entry %d of OTEL_EXPORTER_OTLP_HEADERS is not of the form name=value", i+1)
		}
		headers[name] = value
	}
	return headers, nil
}

// readCertificates reads the files of certificates; nil if there are none.
func readCertificates(authority, certificate, key string) (*tls.Config, error) {
	if authority == "" && certificate == "" {
		return nil, nil
	}
	cfg := &tls.Config{MinVersion: tls.VersionTLS12}
	if authority != "" {
		text, err := os.ReadFile(authority)
		if err != nil {
			return nil, fmt.Errorf("OTEL_EXPORTER_OTLP_CERTIFICATE: %w", err)
		}
		cfg.RootCAs = x509.NewCertPool()
		if !cfg.RootCAs.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("OTEL_EXPORTER_OTLP_CERTIFICATE: %s has no certificate", authority)
		}
	}
	if certificate != "" {
		pair, err := tls.LoadX509KeyPair(certificate, key)
		if err != nil {
			return nil, fmt.Errorf("OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE: %w", err)
		}
		cfg.Certificates = []tls.Certificate{pair}
	}
	return cfg, nil
}
