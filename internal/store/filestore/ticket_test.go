package filestore_test

import (
	"bytes"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/egress"
	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/store/filestore"
	"github.com/parley-server/parley/internal/testing/wait"
)

func TestTicketsAreRefusedBeforeAnyByte(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	guard, err := egress.New(egress.Config{})
	if err != nil {
		t.Fatal(err)
	}
	s := filestore.New(w.pool, w.keys, filestore.Options{Guard: guard})
	for name, c := range map[string]struct {
		change func(*filestore.Request)
		want   fault.Code
	}{
		"a text":              {func(*filestore.Request) {}, ""},
		"the largest":         {func(r *filestore.Request) { *r.Size = filestore.MaxSize }, ""},
		"a byte more":         {func(r *filestore.Request) { *r.Size = filestore.MaxSize + 1 }, fault.FileTooLarge},
		"with parameters":     {func(r *filestore.Request) { r.MIME = "Text/CSV; charset=utf-8" }, ""},
		"no type":             {func(r *filestore.Request) { r.MIME = "text" }, fault.InvalidRequestBody},
		"any type":            {func(r *filestore.Request) { r.MIME = "*/*" }, fault.InvalidRequestBody},
		"two lines":           {func(r *filestore.Request) { r.MIME = "text/plain\r\nx: y" }, fault.InvalidRequestBody},
		"a zip file":          {func(r *filestore.Request) { r.MIME = "application/zip" }, fault.UnsupportedFileType},
		"a zip file, trusted": {func(r *filestore.Request) { r.MIME, r.Unrestricted = "application/zip", true }, ""},
		"HTML":                {func(r *filestore.Request) { r.MIME = "text/html" }, fault.UnsupportedFileType},
		"HTML by its name":    {func(r *filestore.Request) { r.Filename = "a.HTML" }, fault.UnsupportedFileType},
		"HTML, trusted":       {func(r *filestore.Request) { r.Filename, r.MIME, r.Unrestricted = "a.html", "text/html", true }, ""},
		"a program":           {func(r *filestore.Request) { r.MIME = "application/x-msdownload" }, fault.UnsupportedFileType},
		"a program, trusted": {func(r *filestore.Request) {
			r.MIME, r.Unrestricted = "application/x-msdownload", true
		}, fault.UnsupportedFileType},
		"a program's name": {func(r *filestore.Request) { r.Filename, r.Unrestricted = "invoice.pdf.exe", true }, fault.UnsupportedFileType},
		"a hidden one": {func(r *filestore.Request) {
			r.Filename, r.Unrestricted = "invoice.e\u202exe. ", true
		}, fault.UnsupportedFileType},
		"from this machine":    {func(r *filestore.Request) { r.OriginURL = "https://127.0.0.1/a" }, fault.InvalidOriginURL},
		"from anywhere":        {func(r *filestore.Request) { r.OriginURL = "https://files.example.com/a" }, ""},
		"from there, no type":  {func(r *filestore.Request) { r.OriginURL, r.MIME, r.Size = "https://files.example.com/a", "", nil }, ""},
		"from there, unsafely": {func(r *filestore.Request) { r.OriginURL = "http://files.example.com/a" }, fault.InvalidOriginURL},
	} {
		r := w.request(5)
		c.change(&r)
		if _, err := s.Create(t.Context(), r); code(err) != c.want || c.want == "" && err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	r := w.request(5)
	r.OriginURL = "https://files.example.com/a"
	if _, err := w.Create(t.Context(), r); code(err) != fault.InvalidOriginURL {
		t.Errorf("without a guard: %v", err)
	}
}

func TestATicketTellsWhereToSend(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.request(5)
	r.Filename = "../../etc/passwd"
	ticket := w.ticket(t, r)
	if ticket.Status != filestore.StatusPending || ticket.Filename != "passwd" || ticket.MaxSize != 26214400 || ticket.Replayed {
		t.Errorf("%+v", ticket)
	}
	up := ticket.Upload
	if left := time.Until(up.ExpiresAt); up.Method != "PUT" || up.Headers["Content-Type"] != "text/plain" || left > 15*time.Minute ||
		left < 14*time.Minute {
		t.Errorf("%+v", up)
	}
}

// Many requests with one Idempotency-Key make one ticket, and all receive it.
func TestTicketsAreMadeOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.request(5)
	r.Once, r.Hash = "mine", []byte("one request")
	tickets := make([]filestore.Ticket, 8)
	var wg sync.WaitGroup
	for i := range tickets {
		wg.Go(func() {
			var err error
			if tickets[i], err = w.Create(t.Context(), r); err != nil {
				t.Error(err)
			}
		})
	}
	wait.Until(t, "all goroutines", wg.Wait)
	first := 0
	for _, ticket := range tickets {
		if !ticket.Replayed {
			first++
		}
		ticket.Replayed = tickets[0].Replayed
		if d := cmp.Diff(tickets[0], ticket); d != "" {
			t.Error(d)
		}
	}
	if n := w.count(t, `SELECT count(*) FROM files`); n != 1 || first != 1 {
		t.Errorf("%d files, %d requests made one", n, first)
	}
	other := r
	other.Hash = []byte("another request")
	if _, err := w.Create(t.Context(), other); code(err) != fault.IdempotencyKeyReused {
		t.Errorf("another request: %v", err)
	}
	elsewhere := r
	elsewhere.Workspace = w.tenant(t, "elsewhere")
	if ticket, err := w.Create(t.Context(), elsewhere); err != nil || ticket.Replayed || ticket.FileID == tickets[0].FileID {
		t.Errorf("another workspace: %+v, %v", ticket, err)
	}
	w.exec(t, `UPDATE files SET created_at = now() - interval '25 hours'`)
	if ticket, err := w.Create(t.Context(), other); err != nil || ticket.Replayed {
		t.Errorf("a day later: %+v, %v", ticket, err)
	}
}

func TestOnlySoManyFetchesWait(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	guard, err := egress.New(egress.Config{})
	if err != nil {
		t.Fatal(err)
	}
	s := filestore.New(w.pool, w.keys, filestore.Options{Guard: guard})
	r := w.request(5)
	r.OriginURL = "https://files.example.com/a"
	for range filestore.MaxFetching {
		ticket, err := s.Create(t.Context(), r)
		if err != nil || ticket.Status != filestore.StatusFetching || ticket.Upload != nil {
			t.Fatalf("%+v, %v", ticket, err)
		}
	}
	if _, err := s.Create(t.Context(), r); code(err) != fault.QueueFull {
		t.Errorf("one more: %v", err)
	}
	r.Workspace = w.tenant(t, "elsewhere")
	if _, err := s.Create(t.Context(), r); err != nil {
		t.Errorf("another workspace: %v", err)
	}
}

func TestFilesAreListed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var want []uuid.UUID
	for range 5 {
		want = append([]uuid.UUID{w.put(t, "a.txt", "Hello").FileID}, want...)
	}
	session, turn := w.turn(t)
	if _, err := w.Produce(t.Context(), w.ws, session, turn, "call-1", "b.txt", "", strings.NewReader("Hi")); err != nil {
		t.Fatal(err)
	}
	for limit := 1; limit <= 6; limit++ {
		var got []uuid.UUID
		for cursor := ""; ; {
			page, err := w.List(t.Context(), w.ws, filestore.In, limit, cursor)
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range page.Data {
				got = append(got, f.FileID)
			}
			if page.HasMore != (page.NextCursor != nil) {
				t.Fatalf("%+v", page)
			}
			if !page.HasMore {
				break
			}
			cursor = *page.NextCursor
		}
		if !cmp.Equal(got, want) {
			t.Errorf("pages of %d: %v, want %v", limit, got, want)
		}
	}
	all, err := w.List(t.Context(), w.ws, "", 100, "")
	if err != nil || len(all.Data) != 6 || all.Data[0].Direction != filestore.Out || *all.Data[0].SessionID != session ||
		*all.Data[0].TurnID != turn {
		t.Errorf("%+v, %v", all, err)
	}
	if other, err := w.List(t.Context(), uuid.New(), "", 100, ""); err != nil || len(other.Data) != 0 {
		t.Errorf("another workspace sees %+v, %v", other, err)
	}

	page, err := w.List(t.Context(), w.ws, filestore.In, 1, "")
	if err != nil {
		t.Fatal(err)
	}
	good := *page.NextCursor
	bad := []string{" ", "x", good[1:], good + "A", strings.ToUpper(good), strings.Repeat("A", len(good)), strings.Repeat("A", 10<<10),
		"\x00", "é"}
	for i := range good {
		for _, c := range "A0_-" {
			if forged := good[:i] + string(c) + good[i+1:]; forged != good {
				bad = append(bad, forged)
			}
		}
	}
	for _, cursor := range bad {
		if _, err := w.List(t.Context(), w.ws, filestore.In, 1, cursor); code(err) != fault.InvalidCursor {
			t.Errorf("cursor %.40q: %v", cursor, err)
		}
	}
	if _, err := w.List(t.Context(), w.ws, "", 1, good); code(err) != fault.InvalidCursor {
		t.Errorf("another list's cursor: %v", err)
	}
	if _, err := w.List(t.Context(), uuid.New(), filestore.In, 1, good); code(err) != fault.InvalidCursor {
		t.Errorf("another workspace's cursor: %v", err)
	}
}

func TestStatusOfATicket(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ticket := w.ticket(t, w.request(5))
	status := func() filestore.File {
		t.Helper()
		f, err := w.Get(t.Context(), w.ws, ticket.FileID)
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	if f := status(); f.Status != filestore.StatusPending || *f.Size != 5 || f.SHA256 != nil || f.Error != nil {
		t.Errorf("%+v", f)
	}
	w.exec(t, `UPDATE files SET upload_until = now() - interval '2 minutes'`)
	if f := status(); f.Status != filestore.StatusExpired {
		t.Errorf("%+v", f)
	}
	if _, err := w.Get(t.Context(), uuid.New(), ticket.FileID); code(err) != fault.FileNotFound {
		t.Errorf("another workspace: %v", err)
	}
	if _, err := w.Download(t.Context(), w.ws, ticket.FileID); code(err) != fault.FileNotFound {
		t.Errorf("downloading a file that does not exist: %v", err)
	}
	if _, err := w.send(t, ticket, bytes.Repeat([]byte("x"), 6)); code(err) != fault.FileRejected {
		t.Error(err)
	}
	if f := status(); f.Status != filestore.StatusRejected || f.Error == nil || f.Error.Code != "FILE_REJECTED" || f.Error.Reason == "" {
		t.Errorf("%+v", f)
	}
}
