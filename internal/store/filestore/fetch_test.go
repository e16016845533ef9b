package filestore_test

import (
	"context"
	"crypto/sha256"
	"crypto/x509"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/parley-server/parley/internal/egress"
	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/store/filestore"
	"github.com/parley-server/parley/internal/testing/egresstest"
	"github.com/parley-server/parley/internal/testing/wait"
)

// origin is a TLS server, reached as example.com, and a store that may fetch from it.
func origin(t *testing.T, h http.HandlerFunc, names map[string][][]netip.Addr) *world {
	t.Helper()
	w := newWorld(t)
	srv := httptest.NewTLSServer(h)
	t.Cleanup(srv.Close)
	roots := x509.NewCertPool()
	roots.AddCert(srv.Certificate())
	guard, err := egress.New(egress.Config{
		Allow: []string{"example.com:443=" + srv.Listener.Addr().String()}, Roots: roots, Resolver: egresstest.Serve(t, "127.0.0.1:0",
			names).Resolver(),
	})
	if err != nil {
		t.Fatal(err)
	}
	w.guard = guard
	w.fetchers(2)
	return w
}

// fetchers makes a store that fetches n files at once.
func (w *world) fetchers(n int) {
	w.Store = filestore.New(w.pool, w.keys, filestore.Options{Guard: w.guard, Fetchers: n})
}

// fetched lets a file be fetched, without the pauses between tries.
func (w *world) fetched(t *testing.T, r filestore.Request) filestore.File {
	t.Helper()
	ticket := w.ticket(t, r)
	for range 5 {
		if _, err := w.FetchNext(t.Context()); err != nil {
			t.Fatal(err)
		}
		f, err := w.Get(t.Context(), w.ws, ticket.FileID)
		if err != nil {
			t.Fatal(err)
		}
		if f.Status != filestore.StatusFetching {
			return f
		}
		w.exec(t, `UPDATE files SET fetch_after = now() WHERE id = $1`, ticket.FileID)
	}
	t.Fatal("the fetch is retried for ever")
	return filestore.File{}
}

// from returns a request for a file of an origin without any other metadata.
func (w *world) from(url string) filestore.Request {
	return filestore.Request{Workspace: w.ws, Filename: "notes.txt", OriginURL: url}
}

func TestFilesAreFetched(t *testing.T) {
	t.Parallel()
	var hits atomic.Int32
	w := origin(t, func(rw http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/text":
			fmt.Fprint(rw, "Hello")
		case "/flaky":
			if hits.Add(1) < 3 {
				rw.WriteHeader(http.StatusServiceUnavailable)
				return
			}
			fmt.Fprint(rw, "at last")
		case "/down":
			rw.WriteHeader(http.StatusInternalServerError)
		case "/large":
			rw.Write(make([]byte, filestore.MaxSize+1))
		case "/told":
			rw.Header().Set("Content-Length", fmt.Sprint(filestore.MaxSize+1))
		case "/cut":
			rw.Header().Set("Content-Length", "10")
			fmt.Fprint(rw, "Hello")
		case "/zipped":
			rw.Header().Set("Content-Encoding", "gzip")
			fmt.Fprint(rw, "Hello")
		case "/program":
			fmt.Fprint(rw, exe)
		case "/html":
			fmt.Fprint(rw, "<html>")
		case "/r1", "/r2", "/r3", "/r4":
			http.Redirect(rw, r, map[string]string{"/r1": "/text", "/r2": "/r1", "/r3": "/r2", "/r4": "/r3"}[r.URL.Path], http.StatusFound)
		default:
			http.NotFound(rw, r)
		}
	}, nil)
	sum := sha256.Sum256([]byte("Hello"))
	for name, c := range map[string]struct {
		path   string
		change func(*filestore.Request)
		want   string // the content, "" if it is rejected
	}{
		"a text":            {"/text", nil, "Hello"},
		"as declared":       {"/text", func(r *filestore.Request) { r.MIME, r.Size, r.SHA256 = "text/markdown", new(int64(5)), sum[:] }, "Hello"},
		"another size":      {"/text", func(r *filestore.Request) { r.Size = new(int64(4)) }, ""},
		"a larger size":     {"/text", func(r *filestore.Request) { r.Size = new(int64(6)) }, ""},
		"another hash":      {"/text", func(r *filestore.Request) { r.SHA256 = make([]byte, 32) }, ""},
		"another type":      {"/text", func(r *filestore.Request) { r.MIME = "image/png" }, ""},
		"one redirect":      {"/r1", nil, "Hello"},
		"three redirects":   {"/r3", nil, "Hello"},
		"four redirects":    {"/r4", nil, ""},
		"the third time":    {"/flaky", nil, "at last"},
		"never":             {"/down", nil, ""},
		"not there":         {"/nothing", nil, ""},
		"too large":         {"/large", nil, ""},
		"too large, told":   {"/told", nil, ""},
		"cut off":           {"/cut", nil, ""},
		"compressed":        {"/zipped", nil, ""},
		"a program":         {"/program", func(r *filestore.Request) { r.Unrestricted = true }, ""},
		"not on the list":   {"/html", nil, ""},
		"not on it, though": {"/html", func(r *filestore.Request) { r.Unrestricted, r.Filename = true, "a.html" }, "<html>"},
	} {
		r := w.from("https://example.com" + c.path)
		if c.change != nil {
			c.change(&r)
		}
		f := w.fetched(t, r)
		if c.want == "" {
			if f.Status != filestore.StatusRejected || f.Error == nil || f.Error.Reason == "" {
				t.Errorf("%s: %+v", name, f)
			}
			continue
		}
		if f.Status != filestore.StatusReady || string(w.read(t, f.FileID)) != c.want {
			t.Errorf("%s: %+v, %+v", name, f, f.Error)
		}
	}
	if n := w.leftovers(t); n != 0 {
		t.Errorf("%d uploads are left", n)
	}
	if n := w.count(t, `SELECT count(*) FROM files WHERE origin IS NOT NULL`); n != 0 {
		t.Errorf("%d addresses are kept", n)
	}
	if more, err := w.FetchNext(t.Context()); more || err != nil {
		t.Errorf("more files to fetch: %v, %v", more, err)
	}
}

// Addresses that may never be fetched are rejected: at once if their spelling shows it, else when
// they resolve to an internal address. The canary sees no connection.
func TestNothingInsideIsFetched(t *testing.T) {
	t.Parallel()
	port := egresstest.NewCanary(t).Port
	w := origin(t, func(rw http.ResponseWriter, r *http.Request) {
		http.Redirect(rw, r, "https://"+strings.TrimPrefix(r.URL.Path, "/")+":"+port+"/", http.StatusFound)
	}, map[string][][]netip.Addr{
		"inside.example": {egresstest.Addrs("127.0.0.1")},
		"mapped.example": {egresstest.Addrs("::ffff:127.0.0.1")},
		"cloud.example":  {egresstest.Addrs("169.254.169.254")},
		// First a public address without a route.
		"rebind.example": {egresstest.Addrs("3ffe::1"), egresstest.Addrs("127.0.0.1")},
	})
	for _, host := range []string{
		"127.0.0.1", "[::1]", "[::ffff:127.0.0.1]", "0.0.0.0", "0177.0.0.1", "2130706433", "127.1", "localhost.", "localhost",
		"169.254.169.254", "[fd00::1]",
		"100.64.0.1", "198.18.0.1", "224.0.0.1", "10.0.0.1", "good@127.0.0.1", "127。0。0。1", "[::]", "[64:ff9b::7f00:1]",
		"metadata.google.internal",
	} {
		for _, scheme := range []string{"https", "http"} {
			if _, err := w.Create(t.Context(), w.from(scheme+"://"+host+":"+port+"/")); code(err) != fault.InvalidOriginURL {
				t.Errorf("%s://%s: %v", scheme, host, err)
			}
		}
	}
	for _, url := range []string{"file:///etc/passwd", "gopher://example.com/", "unix:/run/x", "https://example.com:5432/",
		"//example.com/", "example.com", "", " ", "https://", "https://example.com/%zz", "https://example.com\n/"} {
		r := w.from(url)
		if r.OriginURL == "" {
			continue
		}
		if _, err := w.Create(t.Context(), r); code(err) != fault.InvalidOriginURL {
			t.Errorf("%q: %v", url, err)
		}
	}
	for _, url := range []string{
		"https://inside.example:" + port + "/", "https://mapped.example:" + port + "/", "https://cloud.example:" + port + "/",
		"https://rebind.example:" + port + "/",
		"https://example.com/127.0.0.1", "https://example.com/localhost", "https://example.com/inside.example", "https://example.com/0x7f.1",
	} {
		f := w.fetched(t, w.from(url))
		if f.Status != filestore.StatusRejected || !strings.Contains(f.Error.Reason, "origin_url") || strings.Contains(f.Error.Reason, "127.0") {
			t.Errorf("%s: %+v, %+v", url, f, f.Error)
		}
	}
}

// When a process dies while it fetches a file, another one fetches it when the lease ends, and not
// before.
func TestADeadFetcherIsReplaced(t *testing.T) {
	t.Parallel()
	w := origin(t, func(rw http.ResponseWriter, _ *http.Request) { fmt.Fprint(rw, "Hello") }, nil)
	ticket := w.ticket(t, w.from("https://example.com/a"))
	w.exec(t, `UPDATE files SET tries = 1, fetch_after = now() + interval '90 seconds'`)
	if more, err := w.FetchNext(t.Context()); more || err != nil {
		t.Errorf("a lease was not renewed: %v, %v", more, err)
	}
	w.exec(t, `UPDATE files SET fetch_after = now() - interval '1 second'`)
	if more, err := w.FetchNext(t.Context()); !more || err != nil {
		t.Errorf("%v, %v", more, err)
	}
	if string(w.read(t, ticket.FileID)) != "Hello" {
		t.Error("the file was not fetched")
	}
}

// While Run runs, a ticket is enough; when Run stops in the middle, it releases the file at once.
func TestRunFetches(t *testing.T) {
	t.Parallel()
	asked, leave := make(chan struct{}), make(chan struct{})
	w := origin(t, func(rw http.ResponseWriter, r *http.Request) {
		asked <- struct{}{}
		select {
		case <-leave:
			fmt.Fprint(rw, "Hello")
		case <-r.Context().Done():
		}
	}, nil)
	run := func() (stop func()) {
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- w.Run(ctx) }()
		return func() {
			cancel()
			if err := wait.Receive(t, "the end of the fetcher", done); err != nil {
				t.Error(err)
			}
		}
	}
	stop := run()
	ticket := w.ticket(t, w.from("https://example.com/a"))
	wait.Receive(t, "the request", asked)
	stop()
	if n := w.count(t, `SELECT count(*) FROM files WHERE state = 'fetching' AND fetch_after <= now()`); n != 1 {
		t.Error("a stopping process keeps its file")
	}
	stop = run()
	wait.Receive(t, "the request", asked)
	leave <- struct{}{}
	for f := (filestore.File{Status: filestore.StatusFetching}); f.Status == filestore.StatusFetching; {
		var err error
		if f, err = w.Get(t.Context(), w.ws, ticket.FileID); err != nil {
			t.Fatal(err)
		}
	}
	stop()
	if string(w.read(t, ticket.FileID)) != "Hello" {
		t.Error("the file was not fetched")
	}
}

// TestAFailedLookForFilesIsRepeated lets the first look fail while no file is to be fetched, so
// that nothing else causes a second one.
func TestAFailedLookForFilesIsRepeated(t *testing.T) {
	t.Parallel()
	w := origin(t, nil, nil)
	w.exec(t, "ALTER TABLE files RENAME TO files_away")
	lines := make(chan string, 100)
	w.Store = filestore.New(w.pool, w.keys, filestore.Options{Guard: w.guard, Fetchers: 2,
		Log: slog.New(slog.NewTextHandler(lineWriter(lines), nil))})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	for !strings.Contains(wait.Receive(t, "the failed look", lines), "look for files to fetch: failed") {
	}
	w.exec(t, "ALTER TABLE files_away RENAME TO files")
	for !strings.Contains(wait.Receive(t, "the next look", lines), "look for files to fetch: works again") {
	}
	cancel()
	if err := wait.Receive(t, "the end of Run", done); err != nil {
		t.Error(err)
	}
}

// lineWriter sends each line of a log.
type lineWriter chan<- string

func (w lineWriter) Write(line []byte) (int, error) {
	select {
	case w <- string(line):
	default:
	}
	return len(line), nil
}
