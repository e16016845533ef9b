package e2e_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/parley-server/parley/internal/testing/wait"
)

// TestKilledMidUpload kills the server while a client uploads a file. The received part is not
// visible, and the ticket is valid on another server.
func TestKilledMidUpload(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.key = w.parley(t, "keys", "create", "--workspace", "w", "--name", "files", "--scope", "files:write", "--scope", "tools:read")
	first, second := w.serve(t, nil), w.serve(t, nil)
	content := bytes.Repeat([]byte("0123456789abcdef"), 1<<16) // four chunks

	var ticket struct {
		Data struct {
			FileID string `json:"file_id"`
			Upload struct{ URL string }
		}
	}
	request := func(s *server, method, path, body string) *http.Request {
		r, err := http.NewRequestWithContext(t.Context(), method, s.url+"/api/v1/workspaces/w/files"+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		return r
	}
	w.call(t, request(first, "POST", "", fmt.Sprintf(`{"filename":"a.txt","mime":"text/plain","size":%d}`, len(content))),
		http.StatusCreated, &ticket)

	body, sender := io.Pipe()
	put, err := http.NewRequestWithContext(t.Context(), "PUT", ticket.Data.Upload.URL, body)
	if err != nil {
		t.Fatal(err)
	}
	put.ContentLength = int64(len(content))
	var wg sync.WaitGroup
	wg.Go(func() {
		if res, err := w.client.Do(put); err == nil {
			res.Body.Close()
			t.Errorf("a killed server answered %d", res.StatusCode)
		}
	})
	if _, err := sender.Write(content[:len(content)*3/4]); err != nil {
		t.Fatal(err)
	}
	stored := func() (n int) {
		if err := w.pool.QueryRow(t.Context(), `SELECT count(*) FROM file_chunks`).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	wait.For(t, "three chunks are stored", func() bool { return stored() == 3 })
	first.kill()
	sender.Close()
	wait.Until(t, "all goroutines", wg.Wait)

	var file struct {
		Data struct {
			Status string
			Size   int
		}
	}
	w.call(t, request(second, "GET", "/"+ticket.Data.FileID, ""), http.StatusOK, &file)
	if file.Data.Status != "pending" {
		t.Errorf("%+v", file)
	}
	if res, text := w.do(t, request(second, "POST", "/download",
		`{"file_id":"`+ticket.Data.FileID+`"}`)); res.StatusCode != http.StatusNotFound {
		t.Errorf("half a file: %d %s", res.StatusCode, text)
	}
	address, err := url.Parse(ticket.Data.Upload.URL)
	if err != nil {
		t.Fatal(err)
	}
	if put, err = http.NewRequestWithContext(t.Context(), "PUT", second.url+address.RequestURI(), bytes.NewReader(content)); err != nil {
		t.Fatal(err)
	}
	w.call(t, put, http.StatusOK, &file)
	if file.Data.Status != "ready" || file.Data.Size != len(content) {
		t.Errorf("%+v", file)
	}
	var list struct {
		Data []struct {
			URL string `json:"download_url"`
		}
	}
	w.call(t, request(second, "POST", "/download", `{"file_id":"`+ticket.Data.FileID+`"}`), http.StatusOK, &list)
	res, err := w.client.Get(list.Data[0].URL)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if got, err := io.ReadAll(res.Body); err != nil || !bytes.Equal(got, content) {
		t.Errorf("%d bytes downloaded, %v", len(got), err)
	}
	if n := stored(); n != 7 {
		t.Errorf("%d chunks: the dead server's three must wait for the sweep", n)
	}
}
