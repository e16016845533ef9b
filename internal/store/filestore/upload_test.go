package filestore_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/iotest"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/store/filestore"
	"github.com/parley-server/parley/internal/testing/wait"
)

const chunk = 256 << 10

// read returns the whole content behind a fresh address.
func (w *world) read(t testing.TB, file uuid.UUID) []byte {
	t.Helper()
	d, err := w.Download(t.Context(), w.ws, file)
	if err != nil {
		t.Fatal(err)
	}
	path, query := split(t, d.DownloadURL)
	c, err := w.Open(t.Context(), path, query)
	if err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(c.Reader(t.Context()))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// text returns n bytes of text without repetitions.
func text(n int) []byte {
	const digits = "0123456789abcdefghijklmnopqrstuvwxyz\n"
	b := make([]byte, n)
	for i := range b {
		b[i] = digits[(i+i/37+i/5000)%len(digits)]
	}
	return b
}

func TestWhatGoesInComesOut(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, n := range []int{0, 1, 511, chunk - 1, chunk, chunk + 1, 3*chunk + 17} {
		data := text(n)
		sum := sha256.Sum256(data)
		r := w.request(n)
		r.SHA256 = sum[:]
		f, err := w.send(t, w.ticket(t, r), data)
		if err != nil {
			t.Fatal(err)
		}
		if f.Status != filestore.StatusReady || *f.Size != int64(n) || *f.SHA256 != hex.EncodeToString(sum[:]) {
			t.Errorf("%d bytes: %+v", n, f)
		}
		if got := w.read(t, f.FileID); !bytes.Equal(got, data) {
			t.Errorf("%d bytes were read as %d", n, len(got))
		}
	}
	if n := w.leftovers(t); n != 0 {
		t.Errorf("%d uploads are left", n)
	}
}

// A reader that seeks anywhere reads the right bytes.
func TestReadingAnywhere(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	data := text(2*chunk + 100)
	f := w.put(t, "a.txt", string(data))
	d, err := w.Download(t.Context(), w.ws, f.FileID)
	if err != nil {
		t.Fatal(err)
	}
	path, query := split(t, d.DownloadURL)
	c, err := w.Open(t.Context(), path, query)
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		got, want := c.Reader(t.Context()), bytes.NewReader(data)
		for range rapid.IntRange(1, 5).Draw(t, "steps") {
			whence := rapid.IntRange(io.SeekStart, io.SeekEnd).Draw(t, "whence")
			offset := rapid.Int64Range(-int64(len(data))-5, int64(len(data))+5).Draw(t, "offset")
			g, gerr := got.Seek(offset, whence)
			h, herr := want.Seek(offset, whence)
			if (gerr == nil) != (herr == nil) || gerr == nil && g != h {
				t.Fatalf("Seek(%d, %d) = %d, %v; want %d, %v", offset, whence, g, gerr, h, herr)
			}
			n := rapid.IntRange(0, chunk+10).Draw(t, "n")
			a, aerr := io.ReadAll(io.LimitReader(got, int64(n)))
			b, berr := io.ReadAll(io.LimitReader(want, int64(n)))
			if aerr != nil || berr != nil || !bytes.Equal(a, b) {
				t.Fatalf("%d bytes at %d: %d, %v; want %d, %v", n, g, len(a), aerr, len(b), berr)
			}
		}
	})
}

func TestWrongBytesAreRejected(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	sum := sha256.Sum256([]byte("Hello"))
	for name, c := range map[string]struct {
		change func(*filestore.Request)
		body   string
		length int64 // length that the sender declares; 0: the length of the body
	}{
		"too short":             {func(*filestore.Request) {}, "Hell", 0},
		"too short, not told":   {func(*filestore.Request) {}, "Hell", -1},
		"too long":              {func(*filestore.Request) {}, "Hello!", 0},
		"too long, not told":    {func(*filestore.Request) {}, "Hello!", -1},
		"much too long":         {func(*filestore.Request) {}, strings.Repeat("x", 3*chunk), -1},
		"another hash":          {func(r *filestore.Request) { r.SHA256 = sum[:] }, "hello", 0},
		"another type":          {func(*filestore.Request) {}, "%PDF-", 0},
		"not what it is said":   {func(r *filestore.Request) { r.MIME = "image/png" }, "Hello", 0},
		"a program":             {func(r *filestore.Request) { r.MIME, r.Unrestricted = "application/octet-stream", true }, "\x7fELF\x02", 0},
		"a script":              {func(*filestore.Request) {}, "#!/sh", 0},
		"HTML in plain clothes": {func(*filestore.Request) {}, "<html", 0},
	} {
		r := w.request(5)
		c.change(&r)
		ticket := w.ticket(t, r)
		if c.length == 0 {
			c.length = int64(len(c.body))
		}
		path, query := split(t, ticket.Upload.URL)
		if name == "HTML in plain clothes" {
			c.body, c.length = "<html><body>", -1
		}
		_, err := w.Upload(t.Context(), path, query, c.length, strings.NewReader(c.body))
		if f := fault.From(err); f == nil || f.Code != fault.FileRejected || f.Detail.Status != "rejected" || f.Message == "" {
			t.Errorf("%s: %v", name, err)
		}
		if f, err := w.Get(t.Context(), w.ws, ticket.FileID); err != nil || f.Status != filestore.StatusRejected {
			t.Errorf("%s: %+v, %v", name, f, err)
		}
		if _, err := w.send(t, ticket, []byte("Hello")); code(err) != fault.FileRejected {
			t.Errorf("%s: sent again, now valid: %v", name, err)
		}
	}
	if n := w.count(t, `SELECT count(*) FROM file_uploads`); n != 0 {
		t.Errorf("%d uploads are left", n)
	}
	path, query := split(t, w.ticket(t, w.request(5)).Upload.URL)
	if _, err := w.Upload(t.Context(), path, query, 6, iotest.ErrReader(errors.New("it was read"))); code(err) != fault.FileRejected {
		t.Errorf("a declared length beyond the limit: %v", err)
	}
}

// An aborted upload leaves nothing, and the sender may retry.
func TestASenderThatBreaksOff(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	data := text(3 * chunk)
	ticket := w.ticket(t, w.request(len(data)))
	path, query := split(t, ticket.Upload.URL)
	for _, broken := range []error{io.ErrUnexpectedEOF, errors.New("connection reset")} {
		for _, after := range []int{0, 1, chunk, 2*chunk + 5, 3 * chunk} {
			body := io.MultiReader(bytes.NewReader(data[:after]), iotest.ErrReader(broken))
			_, err := w.Upload(t.Context(), path, query, int64(len(data)), body)
			if code(err) != fault.InvalidRequestBody {
				t.Errorf("%v after %d: %v", broken, after, err)
			}
			if f, err := w.Get(t.Context(), w.ws, ticket.FileID); err != nil || f.Status != filestore.StatusPending {
				t.Errorf("%+v, %v", f, err)
			}
		}
	}
	if n := w.count(t, `SELECT count(*) FROM file_chunks`); n != 0 {
		t.Errorf("%d chunks are left", n)
	}
	if _, err := w.send(t, ticket, data); err != nil {
		t.Errorf("sent again: %v", err)
	}
}

// paused returns its bytes and then waits until the test ends it.
type paused struct {
	io.Reader
	at, leave chan struct{}
	once      sync.Once
}

func newPaused(data []byte) *paused {
	return &paused{Reader: bytes.NewReader(data), at: make(chan struct{}), leave: make(chan struct{})}
}

func (p *paused) Read(b []byte) (int, error) {
	n, err := p.Reader.Read(b)
	if err == io.EOF {
		p.once.Do(func() { close(p.at); <-p.leave })
	}
	return n, err
}

// During a slow upload, nothing of the file is visible and no transaction is open.
func TestAnUploadUnderWayIsNowhereSeen(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	data := text(2*chunk + 5)
	ticket := w.ticket(t, w.request(len(data)))
	path, query := split(t, ticket.Upload.URL)
	body := newPaused(data)
	done := make(chan error, 1)
	go func() {
		_, err := w.Upload(t.Context(), path, query, int64(len(data)), body)
		done <- err
	}()
	wait.Receive(t, "the body's reader", body.at)
	if n := w.count(t, `SELECT count(*) FROM file_chunks`); n != 2 {
		t.Errorf("%d chunks are stored", n)
	}
	if f, err := w.Get(t.Context(), w.ws, ticket.FileID); err != nil || f.Status != filestore.StatusPending {
		t.Errorf("%+v, %v", f, err)
	}
	if _, err := w.Download(t.Context(), w.ws, ticket.FileID); code(err) != fault.FileNotFound {
		t.Errorf("to download: %v", err)
	}
	if n := w.count(t,
		`SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND state LIKE 'idle in transaction%'`); n != 0 {
		t.Errorf("%d transactions wait for the sender", n)
	}
	if n := w.pool.Stat().AcquiredConns(); n != 0 {
		t.Errorf("%d connections wait for the sender", n)
	}
	// The leftovers of a killed process are removed later, not now.
	if err := w.Sweep(t.Context()); err != nil || w.leftovers(t) != 1 {
		t.Errorf("swept too early: %v", err)
	}
	close(body.leave)
	if err := wait.Receive(t, "the end", done); err != nil {
		t.Error(err)
	}
}

// A killed process leaves chunks that are not visible; Sweep removes them, and nothing else.
func TestSweepRemovesWhatIsAbandoned(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	f := w.put(t, "a.txt", "Hello")
	dead := uuid.New()
	w.exec(t, `INSERT INTO file_uploads (id) VALUES ($1)`, dead)
	w.exec(t, `INSERT INTO file_chunks (upload_id, n, data) VALUES ($1, 0, 'x')`, dead)
	w.exec(t, `UPDATE file_uploads SET touched_at = now() - interval '1 hour'`)
	unused := w.ticket(t, w.request(5))
	w.exec(t, `UPDATE files SET created_at = now() - interval '2 days'`)
	fresh := w.ticket(t, w.request(5))
	if err := w.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := w.leftovers(t); n != 0 {
		t.Errorf("%d uploads are left", n)
	}
	if string(w.read(t, f.FileID)) != "Hello" {
		t.Error("Sweep removed a stored file")
	}
	if _, err := w.Get(t.Context(), w.ws, unused.FileID); code(err) != fault.FileNotFound {
		t.Errorf("an old ticket: %v", err)
	}
	if _, err := w.Get(t.Context(), w.ws, fresh.FileID); err != nil {
		t.Errorf("a new ticket: %v", err)
	}
	// An upload that was considered dead cannot finish.
	body := newPaused([]byte("Hello"))
	path, query := split(t, fresh.Upload.URL)
	done := make(chan error, 1)
	go func() {
		_, err := w.Upload(t.Context(), path, query, 5, io.MultiReader(body, strings.NewReader("")))
		done <- err
	}()
	wait.Receive(t, "the body's reader", body.at)
	w.exec(t, `DELETE FROM file_uploads WHERE touched_at > now() - interval '30 minutes'`)
	close(body.leave)
	if err := wait.Receive(t, "the end", done); err == nil || fault.From(err) != nil {
		t.Errorf("%v", err)
	}
	if f, err := w.Get(t.Context(), w.ws, fresh.FileID); err != nil || f.Status != filestore.StatusPending {
		t.Errorf("%+v, %v", f, err)
	}
}

// If two clients upload at once, the first complete upload counts. The other upload is accepted if
// its bytes are the same, and else rejected.
func TestTwoSendersOfOneTicket(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, c := range []struct {
		second string
		want   fault.Code
	}{{"Hello", ""}, {"hello", fault.FileRejected}, {"Hell", fault.FileRejected}} {
		ticket := w.ticket(t, w.request(5))
		path, query := split(t, ticket.Upload.URL)
		late := newPaused([]byte(c.second))
		done := make(chan error, 1)
		go func() {
			_, err := w.Upload(t.Context(), path, query, -1, late)
			done <- err
		}()
		wait.Receive(t, "the body's reader", late.at)
		if _, err := w.send(t, ticket, []byte("Hello")); err != nil {
			t.Error(err)
		}
		close(late.leave)
		err := wait.Receive(t, "the end", done)
		if f := fault.From(err); c.want == "" && err != nil || c.want != "" && (f == nil || f.Code != c.want || f.Detail.Status != "ready") {
			t.Errorf("%s: %v", c.second, err)
		}
		if got := w.read(t, ticket.FileID); string(got) != "Hello" {
			t.Errorf("the file is %q", got)
		}
		// It is sent again after it is stored.
		if _, err := w.send(t, ticket, []byte(c.second)); code(err) != c.want {
			t.Errorf("%s again: %v", c.second, err)
		}
	}
	if n := w.leftovers(t); n != 0 {
		t.Errorf("%d uploads are left", n)
	}
}

func TestATicketExpires(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ticket := w.ticket(t, w.request(5))
	path, query := split(t, w.Sign("PUT", w.ws, ticket.FileID, ticket.Upload.ExpiresAt.Add(-filestore.UploadTime*2)))
	if _, err := w.Upload(t.Context(), path, query, 5, strings.NewReader("Hello")); code(err) != fault.FileExpired {
		t.Errorf("%v", err)
	}
}
