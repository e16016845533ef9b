package e2e_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/parley-server/parley/internal/testing/egresstest"
	"github.com/parley-server/parley/internal/testing/wait"
)

// TestFilesAreFetchedFromTheirOrigin sends an address in place of bytes: one that the operator
// allows, and an internal one.
func TestFilesAreFetchedFromTheirOrigin(t *testing.T) {
	t.Parallel()
	const content = "Trains first.\n"
	origin := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(rw, content) }))
	t.Cleanup(origin.Close)
	inside := egresstest.NewCanary(t)
	w := newWorld(t)
	w.key = w.parley(t, "keys", "create", "--workspace", "w", "--name", "files", "--scope", "files:write", "--scope", "tools:read")
	s := w.serve(t, []string{"PARLEY_EGRESS_ALLOW=" + origin.URL})

	var file struct {
		Data struct {
			FileID string `json:"file_id"`
			Status string
			Upload any
		}
	}
	w.call(t, s.post("/api/v1/workspaces/w/files", map[string]string{"filename": "travel.txt", "origin_url": origin.URL + "/travel.txt"}),
		http.StatusAccepted, &file)
	if file.Data.Status != "fetching" || file.Data.Upload != nil {
		t.Errorf("%+v", file)
	}
	wait.For(t, "the file is ready", func() bool {
		r, _ := http.NewRequest(http.MethodGet, s.url+"/api/v1/workspaces/w/files/"+file.Data.FileID, nil)
		w.call(t, r, http.StatusOK, &file)
		return file.Data.Status == "ready"
	})
	var list struct {
		Data []struct {
			Filename string
			Size     int
			URL      string    `json:"download_url"`
			Expires  time.Time `json:"expires_at"`
		}
	}
	w.call(t, s.post("/api/v1/workspaces/w/files/download", map[string]string{"file_id": file.Data.FileID}), http.StatusOK, &list)
	if len(list.Data) != 1 || list.Data[0].Filename != "travel.txt" || list.Data[0].Size != len(content) {
		t.Fatalf("%+v", list)
	}
	res, err := brief.Get(list.Data[0].URL) // the address is sufficient
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if got, err := io.ReadAll(res.Body); err != nil || string(got) != content {
		t.Errorf("%q, %v", got, err)
	}
	for _, url := range []string{"https://" + inside.Addr + "/x", "http://" + inside.Addr + "/x", "https://localhost:" + inside.Port + "/x"} {
		res, body := w.do(t, s.post("/api/v1/workspaces/w/files", map[string]string{"filename": "x.txt", "origin_url": url}))
		var refused struct{ Error struct{ Code string } }
		if err := json.Unmarshal(body, &refused); err != nil || res.StatusCode != http.StatusBadRequest ||
			refused.Error.Code != "INVALID_ORIGIN_URL" {
			t.Errorf("%s: %s %s", url, res.Status, body)
		}
	}
}
