package app

import (
	"bufio"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// address is the result of the checks of one address of the server.
type address struct {
	finding Finding
	streams bool // frames arrive as they are sent
}

// checkAddresses checks whether the server is ready behind each address, and whether streams pass.
// The addresses go from the outside to the server: a proxy that buffers is between the last one
// that does so and the next one.
func checkAddresses(ctx context.Context, urls []string) iter.Seq[Finding] {
	return func(yield func(Finding) bool) {
		results := make([]address, len(urls))
		for i, u := range urls {
			limited, cancel := context.WithTimeout(ctx, checkTimeout)
			results[i] = checkAddress(limited, strings.TrimRight(u, "/"))
			cancel()
		}
		for i, r := range results {
			if i > 0 && r.streams && results[i-1].finding.Grade == GradeFail {
				r.finding.Result += fmt.Sprintf(" The cause is between %s and this address.", urls[i-1])
			}
			if !yield(r.finding) {
				return
			}
		}
	}
}

// checkAddress requests the readiness of a server and its test stream.
func checkAddress(ctx context.Context, base string) address {
	fail := func(remedy, format string, args ...any) address {
		return address{finding: Finding{"url", GradeFail, base + ": " + fmt.Sprintf(format, args...), remedy}}
	}
	transport := &http.Transport{Proxy: http.ProxyFromEnvironment, DisableCompression: true, ResponseHeaderTimeout: checkTimeout,
		ForceAttemptHTTP2: true}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}

	res, err := getFrom(ctx, client, base+"/readyz")
	if err != nil {
		return fail("Check the name, the certificate and the proxy of this address, and that the server runs.", "%s", describeDialError(err))
	}
	body, _ := io.ReadAll(io.LimitReader(res.Body, 64<<10))
	res.Body.Close()
	switch {
	case res.StatusCode >= 300 && res.StatusCode < 400:
		return fail("Use the address that it leads to: clients follow no redirects.", "It redirects to %s.", res.Header.Get("Location"))
	case res.StatusCode == http.StatusServiceUnavailable && reasonOf(body) != "":
		return fail("See the log of the server.", "%s", reasonOf(body))
	case res.StatusCode != http.StatusOK || !strings.Contains(string(body), `"status"`):
		return fail("Check the path of the address and the routes of the proxy.", "There is no Parley: GET /readyz is answered %s.", res.Status)
	}

	began := time.Now()
	res, err = getFrom(ctx, client, base+"/healthz/stream")
	if err != nil {
		return fail("Check the proxy of this address.", "The test stream does not begin: %s", describeDialError(err))
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return fail("Let the proxy pass /healthz/stream, and upgrade servers of earlier releases.", "GET /healthz/stream is answered %s.",
			res.Status)
	}
	p, err := measureStream(res, began)
	if err != nil {
		return fail("Check the time limits of the proxy.", "The test stream breaks after %d frames: %s", p.frames, sentenceOf(err))
	}
	if p.spread < p.expected/2 {
		return fail(bufferRemedy(res), "Streams are buffered: %d frames that are sent over %s arrive within %s, %s after the request.%s",
			p.frames, p.expected, p.spread.Round(time.Millisecond), p.last.Round(time.Millisecond), namedProxies(res))
	}
	return address{Finding{"url", GradeOK, fmt.Sprintf("%s: ready, and streams arrive as they are sent; the first frame after %s.%s",
		base, p.first.Round(time.Millisecond), namedProxies(res)), ""}, true}
}

func getFrom(ctx context.Context, client *http.Client, url string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("User-Agent", "parley/"+ThisBuild().Version)
	req.Header.Set("Accept-Encoding", "gzip") // as browsers do: a proxy that compresses buffers
	return client.Do(req)
}

// pace is when the frames of a test stream arrived, after the request.
type pace struct {
	frames           int
	first, last      time.Duration
	spread, expected time.Duration // between the first frame and the last one
}

// measureStream reads the test stream.
func measureStream(res *http.Response, began time.Time) (p pace, err error) {
	body := io.Reader(res.Body)
	if res.Header.Get("Content-Encoding") == "gzip" {
		if body, err = gzip.NewReader(body); err != nil {
			return p, fmt.Errorf("read gzip: %w", err)
		}
	}
	lines := bufio.NewReader(body)
	for {
		line, err := lines.ReadString('\n')
		at := time.Since(began)
		if p.first == 0 {
			p.first = at
		}
		p.last, p.spread = at, at-p.first
		var frame struct {
			N     int           `json:"n"`
			Of    int           `json:"of"`
			Pause time.Duration `json:"pause_ms"`
		}
		if data, ok := strings.CutPrefix(line, "data: "); ok && json.Unmarshal([]byte(data), &frame) == nil {
			p.frames, p.expected = frame.N, time.Duration(frame.Of-1)*frame.Pause*time.Millisecond
			if frame.N == frame.Of {
				return p, nil
			}
		}
		if errors.Is(err, io.EOF) {
			err = errors.New("it ends early")
		}
		if err != nil {
			return p, err
		}
	}
}

// bufferRemedy returns what must change in a proxy that buffers, as far as its response shows it.
func bufferRemedy(res *http.Response) string {
	var do []string
	if e := res.Header.Get("Content-Encoding"); e != "" {
		do = append(do, "Do not compress text/event-stream: the response has Content-Encoding "+e+".")
	}
	server := strings.ToLower(res.Header.Get("Server"))
	switch {
	case strings.Contains(server, "nginx") || strings.Contains(server, "openresty"):
		do = append(do, "nginx: set proxy_buffering off, gzip off and proxy_http_version 1.1 in the location, and remove "+
			"proxy_ignore_headers X-Accel-Buffering.")
	case strings.Contains(server, "cloudflare"):
		do = append(do, "Cloudflare: switch off the features that change responses on this host.")
	default:
		do = append(do, "Switch off buffering, caching and compression of text/event-stream in the proxy.")
	}
	return strings.Join(do, " ")
}

// namedProxies lists the proxies that a response names.
func namedProxies(res *http.Response) string {
	var names []string
	for _, name := range []string{"Server", "Via", "CF-Ray", "X-Cache", "X-Served-By", "X-Amz-Cf-Id"} {
		if v := res.Header.Get(name); v != "" {
			names = append(names, name+": "+v)
		}
	}
	if len(names) == 0 {
		return ""
	}
	return " The response names its proxies: " + strings.Join(names, ", ") + "."
}

// reasonOf returns the message of an error response.
func reasonOf(body []byte) string {
	var r struct {
		Error struct {
			Message string `json:"message"`
		} `json:"error"`
	}
	_ = json.Unmarshal(body, &r) // another server's response has no reason
	return r.Error.Message
}

// describeDialError returns why a request failed, without the repetitions of net/http.
func describeDialError(err error) string {
	if errors.Is(err, context.DeadlineExceeded) {
		return "No answer in time."
	}
	if inner, ok := errors.AsType[*url.Error](err); ok {
		err = inner.Err
	}
	if inner, ok := errors.AsType[*net.OpError](err); ok {
		err = inner
	}
	return sentenceOf(err)
}
