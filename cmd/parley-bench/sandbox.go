package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/parley-server/parley/internal/egress"
	"github.com/parley-server/parley/internal/redact"
	"github.com/parley-server/parley/internal/store/vault"
	"github.com/parley-server/parley/internal/toolenv/sandbox"
)

// sandboxUID runs the commands if the bench runs as root.
const sandboxUID = 64001

// callScenario measures the cost of the sandbox: the same command without one, and as the tool bash
// runs it, with a network of its own.
func callScenario(n int) scenario {
	return scenario{
		Workload: "sandbox", Case: "one command after the other", Modes: []string{Bare, Walled},
		needs:  trySandbox,
		ratios: []ratio{{What: "p50 of a whole call, ms", Metric: P50, Of: Walled}, {What: "p99 of a whole call, ms", Metric: P99, Of: Walled}},
		run: func(ctx context.Context, _ *bench, mode string) (Figures, error) {
			call := runBare
			if mode == Walled {
				box, err := openSandbox(ctx)
				if err != nil {
					return nil, err
				}
				defer box.Close()
				call = func(ctx context.Context) error { return runWalled(ctx, box) }
			}
			var took []time.Duration
			for i := range n + 3 { // the first ones warm caches
				began := time.Now()
				if err := call(ctx); err != nil {
					return nil, err
				}
				if i >= 3 {
					took = append(took, time.Since(began))
				}
			}
			return Figures{P50: milliseconds(percentile(took, 50)), P99: milliseconds(percentile(took, 99))}, nil
		},
	}
}

func openSandbox(ctx context.Context) (*sandbox.Sandbox, error) {
	cfg := sandbox.Config{Transparent: true}
	if os.Getuid() == 0 {
		cfg.Users = sandbox.UserRange{First: sandboxUID, Last: sandboxUID + 63}
	}
	return sandbox.Open(ctx, cfg)
}

// trySandbox returns the reason why sandboxes are not available, or nil.
func trySandbox(ctx context.Context) error {
	box, err := openSandbox(ctx)
	if err != nil {
		return err
	}
	return box.Close()
}

// said is the output of the measured command.
const said = "here\n"

func runBare(ctx context.Context) error {
	out, err := exec.CommandContext(ctx, "/bin/bash", "--noprofile", "--norc", "-c", "echo here").Output()
	if err == nil && string(out) != said {
		err = fmt.Errorf("the command printed %q", out)
	}
	return err
}

func runWalled(ctx context.Context, box *sandbox.Sandbox) error {
	folder, err := box.NewFolder("bench")
	if err != nil {
		return err
	}
	guard, err := egress.New(egress.Config{})
	if err != nil {
		return err
	}
	run, err := guard.Run(egress.RunConfig{})
	if err != nil {
		return err
	}
	defer run.Close()
	var out bytes.Buffer
	res, err := box.Run(ctx, sandbox.Command{Argv: []string{"/bin/bash", "--noprofile", "--norc", "-c", "echo here"}, Folder: folder,
		CA: run.CA(), Serve: run.Serve,
		Direct: &sandbox.Direct{DNS: run.ServeDNS, TLS: run.ServeTLS, Plain: run.ServePlain}, Output: &out})
	if err == nil && (res.Exit != 0 || out.String() != said) {
		err = fmt.Errorf("the command ended with %d and printed %q", res.Exit, out.String())
	}
	return errors.Join(err, box.Remove(folder))
}

// proxyScenario measures the proxy: responses of a TLS server, fetched directly and through it,
// with a credential put into each request and several redacted from each response.
func proxyScenario(n, size, parallel int) scenario {
	return scenario{
		Workload: "sandbox", Case: fmt.Sprintf("answers of %d KiB, %d at a time", size>>10, parallel), Modes: []string{Direct, Proxied},
		ratios: []ratio{{What: "bytes a second: proxied to direct", Metric: Volume, Of: Proxied, To: Direct},
			{What: "requests a second, proxied", Metric: Rate, Of: Proxied}},
		run: func(ctx context.Context, _ *bench, mode string) (Figures, error) {
			return passOnce(ctx, mode, n, size, parallel)
		},
	}
}

// hidden is the number of credentials that are redacted from every response.
const hidden = 10

func passOnce(ctx context.Context, mode string, n, size, parallel int) (_ Figures, err error) {
	text := bytes.Repeat([]byte("An answer of ordinary text, in lines of some sixty letters.\n"), size/60+1)[:size]
	var values []redact.Secret
	for i := range hidden {
		values = append(values, redact.Secret{Name: fmt.Sprintf("KEY_%d", i), Value: fmt.Appendf(nil, "the-value-of-credential-%d", i)})
	}
	up := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "%s\n", r.Header.Get("Authorization"))
		w.Write(text)
	}))
	up.Config.ErrorLog = log.New(io.Discard, "", 0) // connections that end unused
	up.StartTLS()
	defer up.Close()
	roots := x509.NewCertPool()
	roots.AddCert(up.Certificate())
	_, port, _ := net.SplitHostPort(up.Listener.Addr().String())
	guard, err := egress.New(egress.Config{Roots: roots, Allow: []string{"example.com:443=127.0.0.1:" + port}})
	if err != nil {
		return nil, err
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, MaxIdleConnsPerHost: parallel,
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, up.Listener.Addr().String())
		}}
	defer transport.CloseIdleConnections()
	sent, want := string(values[0].Value), string(values[0].Value)
	if mode == Proxied {
		const placeholder = "ph_placeholder_of_the_bench"
		run, err := guard.Run(egress.RunConfig{Redact: redact.New(values...), Credentials: []egress.Credential{
			{Name: "KEY_0", Version: 1, Placeholder: placeholder, Value: vault.NewValue(values[0].Value), Hosts: []string{"example.com"}}}})
		if err != nil {
			return nil, err
		}
		defer run.Close()
		proxy, stop, err := serveProxy(ctx, run)
		if err != nil {
			return nil, err
		}
		defer stop()
		block, _ := pem.Decode(run.CA())
		authority, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, err
		}
		roots = x509.NewCertPool()
		roots.AddCert(authority)
		transport.TLSClientConfig, transport.DialContext, transport.Proxy = &tls.Config{RootCAs: roots}, nil, http.ProxyURL(proxy)
		sent, want = placeholder, "[secret:KEY_0]"
	}
	want += "\n" + string(text)

	took, err := fetchAll(ctx, transport, n, parallel, sent, want)
	return Figures{Rate: float64(n) / took.Seconds(), Volume: float64(n*size) / took.Seconds()}, err
}

// serveProxy serves a run's proxy on an address of this machine.
func serveProxy(ctx context.Context, run *egress.Run) (*url.URL, func(), error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, nil, err
	}
	var wg sync.WaitGroup
	wg.Go(func() { _ = run.Serve(ctx, l) })
	return &url.URL{Scheme: "http", Host: l.Addr().String()}, func() { l.Close(); wg.Wait() }, nil
}

// fetchAll sends n requests and checks every response.
func fetchAll(ctx context.Context, transport *http.Transport, n, parallel int, sent, want string) (time.Duration, error) {
	work := make(chan struct{}, n)
	for range n {
		work <- struct{}{}
	}
	close(work)
	errs := make([]error, parallel)
	var wg sync.WaitGroup
	began := time.Now()
	for i := range parallel {
		wg.Go(func() {
			for range work {
				if errs[i] = fetchBody(ctx, transport, sent, want); errs[i] != nil {
					return
				}
			}
		})
	}
	wg.Wait()
	return time.Since(began), errors.Join(errs...)
}

func fetchBody(ctx context.Context, transport *http.Transport, sent, want string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://example.com/", nil)
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", sent)
	res, err := transport.RoundTrip(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	var body strings.Builder
	if _, err := io.Copy(&body, res.Body); err != nil {
		return err
	}
	if body.String() != want {
		return fmt.Errorf("an answer of %d bytes is not what was to come: %.60q", body.Len(), body.String())
	}
	return nil
}
