package filestore_test

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/store/filestore"
	"github.com/parley-server/parley/internal/testing/modeltest"
	"github.com/parley-server/parley/internal/testing/wait"
)

const mebibyte = 1 << 20

// stored returns the stored bytes of the workspace, as the quota counts them.
func (w *world) stored(t *testing.T) int {
	t.Helper()
	return w.count(t, `SELECT coalesce(sum(files + folders + documents), 0) FROM workspace_storage WHERE workspace_id = $1`, w.ws)
}

func filler(size int) []byte { return bytes.Repeat([]byte("x"), size) }

func TestStorageQuotaBoundsFiles(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.exec(t, `UPDATE workspaces SET storage_quota = $1`, 3*mebibyte)
	early := w.ticket(t, w.request(2*mebibyte)) // while the quota has room for it
	first := w.put(t, "a.txt", string(filler(2*mebibyte)))
	if n := w.stored(t); n != 2*mebibyte {
		t.Errorf("%d bytes are counted", n)
	}
	for name, err := range map[string]error{
		"a ticket":                       func() error { _, err := w.Create(t.Context(), w.request(2*mebibyte)); return err }(),
		"the bytes of an earlier ticket": func() error { _, err := w.send(t, early, filler(2*mebibyte)); return err }(),
		"a produced file": func() error {
			w.exec(t, `UPDATE workspaces SET storage_quota = $1`, 2*mebibyte)
			defer w.exec(t, `UPDATE workspaces SET storage_quota = $1`, 3*mebibyte)
			session, turn := w.turn(t)
			_, err := w.Produce(t.Context(), w.ws, session, turn, "call_1", "b.txt", "", strings.NewReader("more"))
			return err
		}(),
	} {
		f := fault.From(err)
		if f == nil || f.Code != fault.FileTooLarge || !strings.Contains(f.Message, "Its storage quota is") || !strings.Contains(f.Message,
			"Delete files") {
			t.Errorf("%s beyond the quota: %v", name, err)
		}
	}
	if n := w.leftovers(t); n != 0 {
		t.Errorf("%d refused uploads are left", n)
	}
	if err := w.Delete(t.Context(), w.ws, first.FileID); err != nil {
		t.Fatal(err)
	}
	if n := w.stored(t); n != 0 {
		t.Errorf("%d bytes are counted after the file was deleted", n)
	}
	if _, err := w.send(t, early, filler(2*mebibyte)); err != nil {
		t.Errorf("with room again the same ticket fails: %v", err)
	}
}

// TestRacingUploadsKeepTheQuota sends more bytes at once than fit: the transactions that store the
// files decide, whatever the checks before them saw.
func TestRacingUploadsKeepTheQuota(t *testing.T) {
	t.Parallel()
	const files = 12
	w := newWorld(t)
	w.exec(t, `UPDATE workspaces SET storage_quota = $1`, 4*mebibyte)
	var tickets [files]filestore.Ticket
	for i := range tickets {
		tickets[i] = w.ticket(t, w.request(mebibyte))
	}
	var wg sync.WaitGroup
	var mu sync.Mutex
	ready, refused := 0, 0
	for _, ticket := range tickets {
		wg.Go(func() {
			_, err := w.send(t, ticket, filler(mebibyte))
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil:
				ready++
			case code(err) == fault.FileTooLarge:
				refused++
			default:
				t.Error(err)
			}
		})
	}
	wait.Until(t, "all goroutines", wg.Wait)
	if ready != 4 || refused != files-4 || w.stored(t) != 4*mebibyte {
		t.Errorf("%d files are ready, %d refused, %d bytes counted", ready, refused, w.stored(t))
	}
	if n := w.leftovers(t); n != 0 {
		t.Errorf("%d refused uploads are left", n)
	}
}

// TestStorageQuotaCountsTextsOfPDFs counts the text of a PDF with its bytes. A text without room does
// not fail the turn: a note stands for it.
func TestStorageQuotaCountsTextsOfPDFs(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	pdf := modeltest.PDF("BT /F 12 Tf (Hello) Tj ET")
	for _, c := range []struct {
		quota int // beyond the PDF
		text  string
	}{{mebibyte, "[page 1]\nHello\n"}, {5, "[The PDF has no text that can be read: the storage of the workspace is full.]"}} {
		w.exec(t, `UPDATE workspaces SET storage_quota = $1`, len(pdf)+c.quota)
		f, err := w.send(t, w.ticket(t, filestore.Request{Workspace: w.ws, Filename: "a.pdf", MIME: "application/pdf",
			Size: new(int64(len(pdf)))}), pdf)
		if err != nil {
			t.Fatal(err)
		}
		turn := uuid.New()
		w.attach(t, turn, f.FileID)
		for _, extract := range []bool{true, false} {
			if in, err := w.Inbound(t.Context(), turn, extract); err != nil || in[0].Extracted != c.text {
				t.Errorf("%+v, %v", in, err)
			}
		}
		if n := w.stored(t); n != len(pdf)+len(c.text) {
			t.Errorf("%d bytes are counted, want %d and %d", n, len(pdf), len(c.text))
		}
		if err := w.Delete(t.Context(), w.ws, f.FileID); err != nil {
			t.Fatal(err)
		}
		if n := w.stored(t); n != 0 {
			t.Errorf("%d bytes are counted after the file was deleted", n)
		}
	}
}

func TestFetchesKeepTheQuota(t *testing.T) {
	t.Parallel()
	w := origin(t, func(rw http.ResponseWriter, _ *http.Request) { fmt.Fprint(rw, "Hello") }, nil)
	w.exec(t, `UPDATE workspaces SET storage_quota = 3`)
	f := w.fetched(t, w.from("https://example.com/hello"))
	if f.Status != filestore.StatusRejected || !strings.Contains(f.Error.Reason, "Its storage quota is 3 bytes.") {
		t.Errorf("%s: %+v", f.Status, f.Error)
	}
}
