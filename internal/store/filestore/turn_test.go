package filestore_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/store/filestore"
	"github.com/parley-server/parley/internal/testing/modeltest"
	"github.com/parley-server/parley/internal/testing/wait"
)

// attach calls Attach in its own transaction.
func (w *world) attach(t testing.TB, turn uuid.UUID, ids ...uuid.UUID) (rejected []filestore.Rejected) {
	t.Helper()
	err := pgx.BeginFunc(t.Context(), w.pool, func(tx pgx.Tx) (err error) {
		rejected, err = w.Attach(t.Context(), tx, w.ws, turn, ids)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return rejected
}

func TestOnlyGoodFilesComeWithAMessage(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	good, pending, bad, expired, gone := w.put(t, "a.txt", "Hello"), w.ticket(t, w.request(5)), w.ticket(t, w.request(5)),
		w.ticket(t, w.request(5)), w.put(t, "b.txt", "Hi")
	if _, err := w.send(t, bad, []byte("wrong")[:3]); code(err) != fault.FileRejected {
		t.Fatal(err)
	}
	w.exec(t, `UPDATE files SET upload_until = now() - interval '1 hour' WHERE id = $1`, expired.FileID)
	if err := w.Delete(t.Context(), w.ws, gone.FileID); err != nil {
		t.Fatal(err)
	}
	other := *w
	other.ws = w.tenant(t, "other")
	foreign := other.put(t, "c.txt", "Theirs")
	turn, none := uuid.New(), uuid.New()
	rejected := w.attach(t, turn, none, good.FileID, pending.FileID, good.FileID, bad.FileID, expired.FileID, gone.FileID, foreign.FileID)
	var got []string
	for _, r := range rejected {
		got = append(got, fmt.Sprint(r.FileID, " ", r.Filename, " ", r.Code))
		if r.Reason == "" {
			t.Errorf("%+v lacks a reason", r)
		}
	}
	want := []string{
		fmt.Sprint(none, "  FILE_NOT_FOUND"),
		fmt.Sprint(pending.FileID, " notes.txt FILE_NOT_READY"),
		fmt.Sprint(bad.FileID, " notes.txt FILE_REJECTED"),
		fmt.Sprint(expired.FileID, " notes.txt FILE_EXPIRED"),
		fmt.Sprint(gone.FileID, "  FILE_NOT_FOUND"),
		fmt.Sprint(foreign.FileID, "  FILE_NOT_FOUND"),
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	in, err := w.Inbound(t.Context(), turn, true)
	if err != nil || len(in) != 1 || in[0].Filename != "a.txt" || in[0].MIME != "text/plain" || string(in[0].Data) != "Hello" {
		t.Errorf("%+v, %v", in, err)
	}
	if rejected := w.attach(t, uuid.New()); rejected != nil {
		t.Errorf("no files: %+v", rejected)
	}

	var many []uuid.UUID
	for range filestore.MaxAttached + 2 {
		many = append(many, w.put(t, "m.txt", "x").FileID)
	}
	rejected = w.attach(t, uuid.New(), many...)
	if len(rejected) != 2 || rejected[0].Code != "TOO_MANY_FILES" || rejected[0].FileID != many[filestore.MaxAttached] {
		t.Errorf("%+v", rejected)
	}
}

// A model gets texts and images, and never more of them than its limit.
func TestWhatAModelIsGiven(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	send := func(name, mime string, data []byte) uuid.UUID {
		r := filestore.Request{Workspace: w.ws, Filename: name, MIME: mime, Size: new(int64(len(data))), Unrestricted: true}
		f, err := w.send(t, w.ticket(t, r), data)
		if err != nil {
			t.Fatal(name, err)
		}
		return f.FileID
	}
	large := append([]byte(png), make([]byte, 5<<20)...)
	half := append([]byte(png), make([]byte, 4<<20)...)
	long := strings.Repeat("é", 130<<10) // 260 KiB
	turn := uuid.New()
	w.attach(t, turn,
		send("utf16.txt", "text/plain", utf16le("Grüße")),
		send("latin1.csv", "text/csv", []byte("caf\xe9;1")),
		send("bom.json", "application/json", []byte("\ufeff{}")),
		send("paper.pdf", "application/pdf", []byte("%PDF-1.7")),
		send("large.png", "image/png", large),
		send("1.png", "image/png", half), send("2.png", "image/png", half), send("3.png", "image/png", half),
		send("4.png", "image/png", half), send("5.png", "image/png", half),
		send("long.md", "text/markdown", []byte(long)),
		send("last.txt", "text/plain", []byte("no room")),
	)
	in, err := w.Inbound(t.Context(), turn, true)
	if err != nil || len(in) != 12 {
		t.Fatalf("%d, %v", len(in), err)
	}
	texts, images := 0, 0
	for _, f := range in {
		switch {
		case f.Text():
			if texts += len(f.Data); !utf8.Valid(f.Data) {
				t.Errorf("%s is not UTF-8", f.Filename)
			}
		case f.Image():
			images += len(f.Data)
		case f.Data != nil && !f.PDF():
			t.Errorf("%s has content", f.Filename)
		}
	}
	if texts > 256<<10+100 || images > 20<<20 {
		t.Errorf("%d bytes of text, %d of images", texts, images)
	}
	for i, want := range []string{"Grüße", "caf\ufffd;1", "{}", "%PDF-1.7"} {
		if string(in[i].Data) != want {
			t.Errorf("%s: %q", in[i].Filename, in[i].Data)
		}
	}
	for i, there := range []bool{true, true, true, true, false, true, true, true, true, false, true, false} {
		if f := in[i]; (f.Data != nil) != there || f.Size == 0 {
			t.Errorf("%s: %d bytes", f.Filename, len(f.Data))
		}
	}
	if !bytes.Equal(in[5].Data, half) {
		t.Error("an image has changed")
	}
	cut, note, _ := strings.Cut(string(in[10].Data), "\n[cut here: ")
	if !strings.HasPrefix(long, cut) || len(cut) < 255<<10 || !strings.HasSuffix(note, "bytes]") {
		t.Errorf("%d bytes of a long text, %q", len(cut), note)
	}
	nothing := w.put(t, "nothing.txt", "")
	again := uuid.New()
	w.attach(t, again, nothing.FileID)
	if in, err := w.Inbound(t.Context(), again, true); err != nil || len(in) != 1 || in[0].Data == nil {
		t.Errorf("an empty text: %+v, %v", in, err)
	}
}

// One call makes one file, however often and on however many replicas it runs.
func TestACallProducesOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	session, turn := w.turn(t)
	files := make([]event.File, 6)
	var wg sync.WaitGroup
	for i := range files {
		wg.Go(func() {
			var err error
			if files[i], err = w.Produce(t.Context(), w.ws, session, turn, "call-1", "../report.csv", "", strings.NewReader("a,b\n")); err != nil {
				t.Error(err)
			}
		})
	}
	wait.Until(t, "all goroutines", wg.Wait)
	for _, f := range files {
		path, _ := split(t, f.DownloadURL)
		first, _ := split(t, files[0].DownloadURL)
		if f.Filename != "report.csv" || f.MIME != "text/csv" || f.Size != 4 || path != first {
			t.Errorf("%+v", f)
		}
	}
	if again, err := w.Produce(t.Context(), w.ws, session, turn, "call-1", "other.txt", "",
		iotest.ErrReader(errors.New("not read"))); err != nil || again.Filename != "report.csv" {
		t.Errorf("%+v, %v", again, err)
	}
	if _, err := w.Produce(t.Context(), w.ws, session, turn, "call-2", "b.png", "image/png", strings.NewReader(png)); err != nil {
		t.Error(err)
	}
	got, err := w.Produced(t.Context(), w.pool, turn)
	if err != nil || len(got) != 2 || got[0].Filename != "report.csv" || got[1].Filename != "b.png" {
		t.Errorf("%+v, %v", got, err)
	}
	if none, err := w.Produced(t.Context(), w.pool, uuid.New()); err != nil || none != nil {
		t.Errorf("%+v, %v", none, err)
	}
	late := newPaused([]byte("late"))
	done := make(chan event.File, 1)
	go func() {
		f, err := w.Produce(t.Context(), w.ws, session, turn, "call-3", "late.txt", "", late)
		if err != nil {
			t.Error(err)
		}
		done <- f
	}()
	wait.Receive(t, "the body's reader", late.at)
	if _, err := w.Produce(t.Context(), w.ws, session, turn, "call-3", "first.txt", "", strings.NewReader("first")); err != nil {
		t.Error(err)
	}
	close(late.leave)
	if f := wait.Receive(t, "the end", done); f.Filename != "first.txt" {
		t.Errorf("the late call made %+v", f)
	}
	if n := w.leftovers(t); n != 0 {
		t.Errorf("%d uploads are left", n)
	}
}

func TestWhatMayNotBeProduced(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	session, turn := w.turn(t)
	for name, c := range map[string]struct {
		filename, mime, content string
		want                    fault.Code
	}{
		"a program":      {"a.bin", "", exe, fault.FileRejected},
		"a script":       {"a", "text/plain", "#!/bin/sh", fault.FileRejected},
		"by its name":    {"a.exe", "", "Hello", fault.FileRejected},
		"another type":   {"a.png", "image/png", "Hello", fault.FileRejected},
		"no type":        {"a.txt", "text", "Hello", fault.FileRejected},
		"too large":      {"a.txt", "", strings.Repeat("x", filestore.MaxSize+1), fault.FileTooLarge},
		"a page, though": {"a.html", "text/html", "<html>", ""},
	} {
		if _, err := w.Produce(t.Context(), w.ws, session, turn, name, c.filename, c.mime,
			strings.NewReader(c.content)); code(err) != c.want || c.want == "" && err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if n := w.leftovers(t); n != 0 {
		t.Errorf("%d uploads are left", n)
	}
	w.exec(t, `INSERT INTO files (id, workspace_id, direction, state, filename, mime, size, unrestricted, turn_id, call_id)
		SELECT gen_random_uuid(), $1, 'out', 'ready', 'x', 'text/plain', 0, true, $2, n::text FROM generate_series(1, 99) n`, w.ws, turn)
	if _, err := w.Produce(t.Context(), w.ws, session, turn, "one more", "a.txt", "",
		strings.NewReader("Hello")); code(err) != fault.FileRejected {
		t.Errorf("the hundred and first: %v", err)
	}
}

func TestFilesOfManyTurns(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	session, one := w.turn(t)
	two, none := uuid.New(), uuid.New()
	in := w.put(t, "in.txt", "Hello")
	w.attach(t, one, in.FileID, w.put(t, "more.txt", "more").FileID)
	w.attach(t, two, in.FileID)
	for i, turn := range []uuid.UUID{one, one, two} {
		if _, err := w.Produce(t.Context(), w.ws, session, turn, fmt.Sprint(i), fmt.Sprintf("out-%d.txt", i), "",
			strings.NewReader("x")); err != nil {
			t.Fatal(err)
		}
	}
	of, err := w.OfTurns(t.Context(), w.ws, []uuid.UUID{one, two, none})
	if err != nil {
		t.Fatal(err)
	}
	names := func(files []event.File) (list string) {
		for _, f := range files {
			list += f.Filename + " "
			path, query := split(t, f.DownloadURL)
			if _, err := w.Open(t.Context(), path, query); err != nil {
				t.Errorf("%s: %v", f.Filename, err)
			}
		}
		return list
	}
	if names(of[one].In) != "in.txt more.txt " || names(of[one].Out) != "out-0.txt out-1.txt " || names(of[two].In) != "in.txt " ||
		names(of[two].Out) != "out-2.txt " || len(of) != 2 {
		t.Errorf("%+v", of)
	}
	if other, err := w.OfTurns(t.Context(), uuid.New(), []uuid.UUID{one, two}); err != nil || len(other) != 0 {
		t.Errorf("another workspace: %+v, %v", other, err)
	}
	for name, c := range map[string]struct {
		turn     *uuid.UUID
		filename *string
		want     string
	}{
		"all":       {nil, nil, "out-2.txt out-1.txt out-0.txt "},
		"of a turn": {&one, nil, "out-1.txt out-0.txt "},
		"by name":   {nil, new("out-1.txt"), "out-1.txt "},
		"neither":   {&two, new("out-1.txt"), ""},
	} {
		list, err := w.Downloads(t.Context(), w.ws, session, c.turn, c.filename)
		got := ""
		for _, d := range list {
			got += d.Filename + " "
		}
		if err != nil || got != c.want {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	if list, err := w.Downloads(t.Context(), uuid.New(), session, nil, nil); err != nil || len(list) != 0 {
		t.Errorf("another workspace: %+v, %v", list, err)
	}
}

// TestTextOfPDFsIsStored attaches PDFs. Their texts are extracted once and stay, up to the limit,
// and go with the files.
func TestTextOfPDFsIsStored(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	send := func(pdf []byte) uuid.UUID {
		f, err := w.send(t, w.ticket(t, filestore.Request{Workspace: w.ws, Filename: "a.pdf", MIME: "application/pdf",
			Size: new(int64(len(pdf)))}), pdf)
		if err != nil {
			t.Fatal(err)
		}
		return f.FileID
	}
	first, turn := send(modeltest.PDF("BT /F 12 Tf (Hello) Tj ET")), uuid.New()
	long := send(modeltest.PDF("BT /F 12 Tf (" + strings.Repeat("x", filestore.ReadPDFText) + ") Tj ET"))
	w.attach(t, turn, first, send([]byte("%PDF-1.7\nbroken")), long)
	if in, err := w.Inbound(t.Context(), turn, false); err != nil || in[0].Extracted != "" || in[0].Data == nil {
		t.Errorf("without an extraction: %+v, %v", in, err)
	}
	for _, extract := range []bool{true, false} {
		in, err := w.Inbound(t.Context(), turn, extract)
		if err != nil || in[0].Extracted != "[page 1]\nHello\n" || !strings.HasPrefix(in[1].Extracted, "[The PDF has no text") {
			t.Fatalf("%+v, %v", in, err)
		}
		if got := in[2].Extracted; len(got) > filestore.ReadPDFText || !strings.HasSuffix(got, "x\n[cut here: the text has 262154 bytes]") {
			t.Errorf("%d bytes of text, %q", len(got), got[len(got)-60:])
		}
	}
	bomb, dense := modeltest.CompressedPDF("BT /F 12 Tf ("+strings.Repeat("x", filestore.ReadPDFText)+") Tj ET"), uuid.New()
	w.attach(t, dense, send(bomb))
	if in, err := w.Inbound(t.Context(), dense, true); err != nil || len(in[0].Extracted) > filestore.TextPerByte*len(bomb)+100 ||
		!strings.Contains(in[0].Extracted, "x\n[cut here: at most 16 times") {
		t.Errorf("a PDF of %d bytes has %d bytes of text, %v", len(bomb), len(in[0].Extracted), err)
	}
	if _, err := w.pool.Exec(t.Context(),
		`UPDATE file_texts SET text = 'stored' WHERE upload_id = (SELECT upload_id FROM files WHERE id = $1)`, first); err != nil {
		t.Fatal(err)
	}
	if in, err := w.Inbound(t.Context(), turn, true); err != nil || in[0].Extracted != "stored" {
		t.Errorf("%+v, %v", in, err)
	}
	if err := w.Delete(t.Context(), w.ws, first); err != nil {
		t.Fatal(err)
	}
	var left int
	if err := w.pool.QueryRow(t.Context(), `SELECT count(*) FROM file_texts`).Scan(&left); err != nil || left != 3 {
		t.Errorf("%d texts are left, %v", left, err)
	}
}
