package egress_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/parley-server/parley/internal/egress"
	"github.com/parley-server/parley/internal/redact"
	"github.com/parley-server/parley/internal/store/vault"
	"github.com/parley-server/parley/internal/testing/egresstest"
	"github.com/parley-server/parley/internal/testing/wait"
)

const (
	value  = `s3cret/Value+for "api"&test=1`
	holder = "ph_ABCDEFGHIJKLMNOPQRSTUVWX"
	mark   = "[secret:API_KEY]"
)

// arrived is a request as a server received it.
type arrived struct {
	site, method, uri, host string
	header                  http.Header
	body                    string
}

// world has servers whose names only a pin resolves: api.test, evil.test, other.api.test,
// www.wild.test, wild.test and xwild.test by HTTPS, plain.test by HTTP too.
type world struct {
	guard *egress.Guard
	mu    sync.Mutex
	seen  []arrived
	notes []note
	hook  http.HandlerFunc // handles the request instead of the echo
}

// note is the record of a request.
type note struct {
	egress.Request
	status int
	final  string
}

var names = []string{"api.test", "evil.test", "other.api.test", "api.test.evil.test", "xapi.test", "www.wild.test", "wild.test",
	"xwild.test"}

func newWorld(t *testing.T, cfg egress.Config) *world {
	t.Helper()
	w := &world{}
	ca := egresstest.NewAuthority(t)
	cfg.Roots = ca.Roots()
	for _, name := range names {
		cfg.Allow = append(cfg.Allow, name+":443="+ca.Site(t, w.site(name), name))
	}
	cfg.Allow = append(cfg.Allow, "api.test:8443="+ca.Site(t, w.site("api.test:8443"), "api.test"))
	for _, name := range []string{"api.test", "plain.test"} {
		srv := httptest.NewServer(w.site("http://" + name))
		t.Cleanup(srv.Close)
		cfg.Allow = append(cfg.Allow, "http://"+name+":80="+srv.Listener.Addr().String())
	}
	w.guard = guard(t, cfg)
	return w
}

// site records each request and echoes it.
func (w *world) site(name string) http.Handler {
	return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.mu.Lock()
		w.seen = append(w.seen, arrived{name, r.Method, r.RequestURI, r.Host, r.Header.Clone(), string(body)})
		hook := w.hook
		w.mu.Unlock()
		r.Body = io.NopCloser(bytes.NewReader(body))
		if hook != nil {
			hook(rw, r)
			return
		}
		fmt.Fprintf(rw, "%s %s\n", r.Method, r.RequestURI)
		_ = r.Header.Write(rw)
		_, _ = rw.Write(body)
	})
}

func (w *world) arrivals() []arrived {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.seen)
}

func (w *world) last(t *testing.T) arrived {
	t.Helper()
	all := w.arrivals()
	if len(all) == 0 {
		t.Fatal("nothing arrived")
	}
	return all[len(all)-1]
}

func (w *world) noted() []note {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.notes)
}

func (w *world) record(_ context.Context, r egress.Request) (func(int, string), error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	at := len(w.notes)
	w.notes = append(w.notes, note{Request: r, status: -1})
	return func(status int, decision string) {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.notes[at].status != -1 {
			w.notes[at].final = "done twice"
			return
		}
		w.notes[at].status, w.notes[at].final = status, decision
	}, nil
}

// key returns a credential for api.test.
func key(change ...func(*egress.Credential)) egress.Credential {
	c := egress.Credential{Name: "API_KEY", Version: 3, Placeholder: holder, Value: vault.NewValue([]byte(value)), Hosts: []string{"api.test"}}
	for _, f := range change {
		f(&c)
	}
	return c
}

// run starts a run with a credential for api.test, unless cfg has others.
func (w *world) run(t *testing.T, cfg egress.RunConfig) *egress.Run {
	t.Helper()
	if cfg.Credentials == nil {
		cfg.Credentials = []egress.Credential{key()}
	}
	if cfg.Redact == nil {
		var secrets []redact.Secret
		for _, c := range cfg.Credentials {
			secrets = append(secrets, redact.Secret{Name: c.Name, Value: c.Value.Reveal()})
		}
		cfg.Redact = redact.New(secrets...)
	}
	if cfg.Record == nil {
		cfg.Record = w.record
	}
	r, err := w.guard.Run(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	return r
}

// proxy serves a run until the test ends, and returns its address.
func proxy(t *testing.T, r *egress.Run) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	ctx, cancel := context.WithCancel(context.Background())
	go func() { done <- r.Serve(ctx, l) }()
	t.Cleanup(func() {
		cancel()
		if err := wait.Receive(t, "the end", done); err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
	return l.Addr().String()
}

// door is a way to make a request.
type door struct {
	name string
	do   func(*http.Request) (*http.Response, error)
}

// doors returns both ways into a run: Do, and a Go program that uses the proxy.
func doors(t *testing.T, r *egress.Run) []door {
	t.Helper()
	return []door{{"do", r.Do}, {"proxy", program(t, r).RoundTrip}}
}

// program returns a client of a run's proxy that trusts only the run.
func program(t *testing.T, r *egress.Run) *http.Transport {
	t.Helper()
	at := &url.URL{Scheme: "http", Host: proxy(t, r)}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(r.CA()) {
		t.Fatal("the run's certificate cannot be read")
	}
	tr := &http.Transport{Proxy: http.ProxyURL(at), TLSClientConfig: &tls.Config{RootCAs: roots}, DisableCompression: true}
	t.Cleanup(tr.CloseIdleConnections)
	return tr
}

// answer is a response, or the error of a rejected request.
type answer struct {
	status int
	header http.Header
	body   string
	err    error
}

// text returns every part of an answer.
func (a answer) text() string { return fmt.Sprint(a.status, a.header, a.body, a.err) }

// send sends a request; edit may change it.
func (d door) send(t *testing.T, method, url, body string, edit func(*http.Request)) answer {
	t.Helper()
	var from io.Reader
	if body != "" {
		from = strings.NewReader(body)
	}
	req, err := http.NewRequestWithContext(t.Context(), method, url, from)
	if err != nil {
		t.Fatal(err)
	}
	if edit != nil {
		edit(req)
	}
	res, err := d.do(req)
	if err != nil {
		return answer{err: err}
	}
	defer res.Body.Close()
	hidden(t, res.Status)
	if d.name == "do" && res.Request != req {
		t.Error("the response belongs to another request")
	}
	text, err := io.ReadAll(res.Body)
	return answer{res.StatusCode, res.Header, string(text), err}
}

// get sends a placeholder in the header Authorization.
func (d door) get(t *testing.T, url string) answer {
	t.Helper()
	return d.send(t, http.MethodGet, url, "", func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+holder) })
}

// hidden fails if a text contains a form of the value.
func hidden(t *testing.T, text string) {
	t.Helper()
	if redact.New(redact.Secret{Name: "LEAK", Value: []byte(value)}).String(text) != text || strings.Contains(text, "s3cret") {
		t.Errorf("the value is in %q", text)
	}
}

// newStreamSite has a guard and an api.test that echoes each piece of a request as it arrives.
func newStreamSite(t *testing.T) *world {
	t.Helper()
	ca := egresstest.NewAuthority(t)
	at := ca.Site(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		rc := http.NewResponseController(w)
		_ = rc.EnableFullDuplex()
		_ = rc.Flush()
		buf := make([]byte, 100)
		for {
			n, err := r.Body.Read(buf)
			_, _ = w.Write(buf[:n])
			_ = rc.Flush()
			if err != nil {
				return
			}
		}
	}), "api.test")
	return &world{guard: guard(t, egress.Config{Roots: ca.Roots(), Allow: []string{"api.test:443=" + at}})}
}
