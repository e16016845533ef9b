package rest_test

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/server"
	"github.com/parley-server/parley/internal/store/apikey"
	"github.com/parley-server/parley/internal/store/filestore"
	"github.com/parley-server/parley/internal/testing/wait"
)

// ticket is the response of createFile.
type ticket struct {
	FileID string `json:"file_id"`
	Status string
	Upload struct {
		Method  string
		URL     string
		Headers map[string]string
	}
	MaxSize int64 `json:"max_size"`
}

// download is one item in the response of downloadFiles.
type download struct {
	Filename    string
	MIME        string
	Size        int64
	DownloadURL string    `json:"download_url"`
	FileID      string    `json:"file_id"`
	ExpiresAt   time.Time `json:"expires_at"`
}

// ticket requests a ticket for a text.
func (s *service) ticket(t testing.TB, name string, size int) ticket {
	t.Helper()
	r := s.get(t, call{method: "POST", path: "files", body: fmt.Sprintf(`{"filename":%q,"mime":"text/plain","size":%d}`, name, size)})
	if r.status != 201 {
		t.Fatalf("%d %s", r.status, r.text)
	}
	var got ticket
	decode(t, r.Data, &got)
	return got
}

// put sends bytes to a signed address, without a key.
func (s *service) put(t testing.TB, url, body string, header ...string) reply {
	t.Helper()
	return s.get(t, call{method: "PUT", path: strings.TrimPrefix(url, s.URL), key: "-", body: body,
		header: append([]string{"Content-Type", "text/plain"}, header...)})
}

// download uploads a file with this content and returns a fresh address for it.
func (s *service) download(t testing.TB, name, content string) download {
	t.Helper()
	tk := s.ticket(t, name, len(content))
	if r := s.put(t, tk.Upload.URL, content); r.status != 200 {
		t.Fatalf("%d %s", r.status, r.text)
	}
	return s.downloadOf(t, tk.FileID)
}

func (s *service) downloadOf(t testing.TB, id string) download {
	t.Helper()
	r := s.get(t, call{method: "POST", path: "files/download", body: fmt.Sprintf(`{"file_id":%q}`, id)})
	var list []download
	if decode(t, r.Data, &list); r.status != 200 || len(list) != 1 {
		t.Fatalf("%d %s", r.status, r.text)
	}
	return list[0]
}

// fetch downloads from a signed address, without a key.
func (s *service) fetch(t testing.TB, url string, header ...string) reply {
	t.Helper()
	return s.get(t, call{path: strings.TrimPrefix(url, s.URL), key: "-", header: header})
}

func TestAFileGoesInAndOut(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	tk := s.ticket(t, `../"Grüße";.txt`, 5)
	if tk.Status != "pending" || tk.Upload.Method != "PUT" || tk.MaxSize != 26214400 || !strings.HasPrefix(tk.Upload.URL,
		s.URL+"/api/v1/workspaces/") {
		t.Errorf("%+v", tk)
	}
	sum := sha256.Sum256([]byte("Hello"))
	var f filestore.File
	for range 2 { // sent again, as by a client that received no response
		r := s.put(t, tk.Upload.URL, "Hello")
		if decode(t, r.Data, &f); r.status != 200 || f.Status != "ready" || *f.SHA256 != hex.EncodeToString(sum[:]) || *f.Size != 5 {
			t.Errorf("%d %s", r.status, r.text)
		}
	}
	got := s.get(t, call{path: "files/" + tk.FileID})
	if decode(t, got.Data, &f); got.status != 200 || f.Status != "ready" || f.Filename != "_Grüße_;.txt" || f.Direction != "in" {
		t.Errorf("%d %s", got.status, got.text)
	}
	d := s.downloadOf(t, tk.FileID)
	if left := time.Until(d.ExpiresAt); d.Size != 5 || d.MIME != "text/plain" || left > 7*24*time.Hour ||
		left < 7*24*time.Hour-time.Minute || !strings.HasPrefix(d.DownloadURL, s.URL) {
		t.Errorf("%+v", d)
	}
	for _, method := range []string{"GET", "HEAD"} {
		r := s.get(t, call{method: method, path: strings.TrimPrefix(d.DownloadURL, s.URL), key: "-"})
		disposition, params, err := mime.ParseMediaType(r.header.Get("Content-Disposition"))
		if r.status != 200 || r.text != map[string]string{"GET": "Hello"}[method] || r.header.Get("Content-Length") != "5" ||
			r.header.Get("Content-Type") != "text/plain" ||
			err != nil || disposition != "attachment" || params["filename"] != "_Grüße_;.txt" ||
			r.header.Get("ETag") != `"`+hex.EncodeToString(sum[:])+`"` ||
			r.header.Get("Content-Security-Policy") != "sandbox; default-src 'none'" || r.header.Get("Set-Cookie") != "" ||
			r.header.Get("Last-Modified") == "" {
			t.Errorf("%s: %d %q %v", method, r.status, r.text, r.header)
		}
	}
}

func TestRangesOfAFile(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	content := strings.Repeat("0123456789", 60_000) // three chunks
	d := s.download(t, "digits.txt", content)
	tag := s.fetch(t, d.DownloadURL).header.Get("ETag")
	n := len(content)
	for _, c := range []struct {
		header []string
		status int
		from   int
		to     int
	}{
		{[]string{"Range", "bytes=0-9"}, 206, 0, 10},
		{[]string{"Range", "bytes=262140-262149"}, 206, 262140, 262150}, // across the boundary of a chunk
		{[]string{"Range", "bytes=599995-"}, 206, n - 5, n},
		{[]string{"Range", "bytes=-7"}, 206, n - 7, n},
		{[]string{"Range", "bytes=0-999999999"}, 206, 0, n},
		{[]string{"Range", "bytes=0-9", "If-Range", tag}, 206, 0, 10},
		{[]string{"Range", "bytes=0-9", "If-Range", `"old"`}, 200, 0, n},
		{[]string{"Range", "bytes=0-1,5-6"}, 200, 0, n},
		{[]string{"Range", "lines=0-1"}, 200, 0, n},
		{[]string{"Range", "bytes=600000-"}, 416, 0, 0},
		{[]string{"Range", "bytes=9-0"}, 416, 0, 0},
		{[]string{"If-None-Match", tag}, 304, 0, 0},
		{[]string{"If-None-Match", `"old"`}, 200, 0, n},
		{[]string{"If-Match", `"old"`}, 200, 0, n},
	} {
		r := s.fetch(t, d.DownloadURL, c.header...)
		if r.status != c.status || r.status < 300 && r.text != content[c.from:c.to] {
			t.Errorf("%v: %d, %d bytes", c.header, r.status, len(r.text))
		}
		if want := fmt.Sprintf("bytes %d-%d/%d", c.from, c.to-1, n); r.status == 206 && r.header.Get("Content-Range") != want {
			t.Errorf("%v: %s, want %s", c.header, r.header.Get("Content-Range"), want)
		}
		if r.status == 416 && (r.Error.Code != "RANGE_NOT_SATISFIABLE" || r.header.Get("Content-Disposition") != "" ||
			r.header.Get("Cache-Control") != "no-store") {
			t.Errorf("%v: %s %v", c.header, r.text, r.header)
		}
	}
}

func TestForgedAndExpiredAddresses(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	d := s.download(t, "a.txt", "Hello")
	other := s.download(t, "b.txt", "Another")
	path, query, _ := strings.Cut(strings.TrimPrefix(d.DownloadURL, s.URL), "?")
	tk := s.ticket(t, "c.txt", 5)
	for name, c := range map[string]struct {
		method, at string
		status     int
		code       string
	}{
		"no query":          {"GET", path, 404, "FILE_NOT_FOUND"},
		"one more":          {"GET", path + "?" + query + "&x=1", 404, "FILE_NOT_FOUND"},
		"another file":      {"GET", strings.Replace(path, d.FileID, other.FileID, 1) + "?" + query, 404, "FILE_NOT_FOUND"},
		"another workspace": {"GET", strings.Replace(path, s.Workspace.ID.String(), uuid.NewString(), 1) + "?" + query, 404, "FILE_NOT_FOUND"},
		"by name":           {"GET", strings.Replace(path, s.Workspace.ID.String(), "demo", 1) + "?" + query, 404, "FILE_NOT_FOUND"},
		"escaped":           {"GET", strings.Replace(path, "-", "%2D", 1) + "?" + query, 404, "FILE_NOT_FOUND"},
		"a broken escape":   {"GET", path + "?" + query + "%zz", 404, "FILE_NOT_FOUND"},
		"no ids":            {"GET", "/api/v1/workspaces/%00/files/%ff/content?" + query, 404, "FILE_NOT_FOUND"},
		"to upload":         {"PUT", path + "?" + query, 404, "FILE_NOT_FOUND"},
		"an upload's":       {"GET", strings.TrimPrefix(tk.Upload.URL, s.URL), 404, "FILE_NOT_FOUND"},
		"posted":            {"POST", path + "?" + query, 405, "METHOD_NOT_ALLOWED"},
		"deleted":           {"DELETE", path + "?" + query, 405, "METHOD_NOT_ALLOWED"},
	} {
		body := ""
		if c.method == "PUT" {
			body = "Hello"
		}
		if r := s.get(t, call{method: c.method, path: c.at, key: "-", body: body}); r.status != c.status || r.Error.Code != c.code {
			t.Errorf("%s: %d %s", name, r.status, r.text)
		}
	}
	if r := s.fetch(t, d.DownloadURL, "Accept", "image/png"); r.status != 406 {
		t.Errorf("not acceptable: %d", r.status)
	}
	if err := s.Files.Delete(t.Context(), s.Workspace.ID, uuid.MustParse(d.FileID)); err != nil {
		t.Fatal(err)
	}
	if r := s.fetch(t, d.DownloadURL); r.status != 404 || r.Error.Code != "FILE_NOT_FOUND" {
		t.Errorf("a deleted file: %d %s", r.status, r.text)
	}
	late := filestore.New(s.pool, s.Ring, filestore.Options{TTL: -time.Hour})
	old, err := late.Download(t.Context(), s.Workspace.ID, uuid.MustParse(other.FileID))
	if err != nil {
		t.Fatal(err)
	}
	if r := s.fetch(t, old.DownloadURL); r.status != 410 || r.Error.Code != "FILE_EXPIRED" {
		t.Errorf("an expired address: %d %s", r.status, r.text)
	}
}

func TestATicketsRequestIsChecked(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	writer := s.Issue(t, s.Workspace, apikey.FilesWrite)
	trusted := s.Issue(t, s.Workspace, apikey.FilesWriteUnrestricted)
	sum := strings.Repeat("0", 64)
	for _, c := range []struct {
		body, key string
		status    int
		want      string // the message of the error, or its code
	}{
		{`{"filename":"a.txt","mime":"text/plain","size":5,"sha256":"` + sum + `"}`, writer, 201, ""},
		{`{}`, writer, 400, "/filename required, /mime required, /size required"},
		{`{"filename":"a.txt","origin_url":"https://x"}`, writer, 400, "INVALID_ORIGIN_URL"},
		{`{"filename":"","mime":" ","size":-1,"sha256":"x","orgin_url":"x"}`, writer, 400,
			"/filename min_length, /mime min_length, /size minimum, /sha256 format, /orgin_url unknown"},
		{`{"filename":1,"mime":1,"size":"1","sha256":1,"origin_url":1}`, writer, 400,
			"/filename type, /mime type, /size type, /sha256 type, /origin_url type"},
		{`{"filename":"` + strings.Repeat("é", 1001) + `","mime":"` + strings.Repeat("x", 128) + `","size":1.5}`, writer, 400,
			"/filename max_length, /mime max_length, /size type"},
		{`{"filename":"` + strings.Repeat("é", 1000) + `","mime":"text/plain","size":5}`, writer, 201, ""},
		{`{"filename":"a.txt","mime":"text","size":5}`, writer, 400, "/mime format"},
		{`{"filename":"a.txt","mime":"text/plain","size":26214401}`, writer, 413, "FILE_TOO_LARGE"},
		{`{"filename":"a.zip","mime":"application/zip","size":5}`, writer, 415, "UNSUPPORTED_FILE_TYPE"},
		{`{"filename":"a.zip","mime":"application/zip","size":5}`, trusted, 201, ""},
		{`{"filename":"a.exe","mime":"text/plain","size":5}`, trusted, 415, "UNSUPPORTED_FILE_TYPE"},
		{`{"filename":"a\u0000b\ud800.txt","mime":"text/plain","size":5}`, writer, 201, ""},
	} {
		r := s.get(t, call{method: "POST", path: "files", body: c.body, key: c.key})
		var wrong []string
		for _, v := range r.Error.Violations {
			wrong = append(wrong, v.Param+" "+v.Rule)
		}
		got := strings.Join(wrong, ", ")
		if got == "" {
			got = r.Error.Code
		}
		if r.status != c.status || got != c.want {
			t.Errorf("%.80s: %d %s, want %d %s", c.body, r.status, got, c.status, c.want)
		}
	}
	for body, want := range map[string]string{
		`{}`: "/file_id exactly_one",
		`{"file_id":"x","session_id":1,"turn_id":"","filename":"","limit":1}`:            "/file_id format, /session_id type, /turn_id format, /filename min_length, /limit unknown",
		`{"file_id":"` + uuid.NewString() + `","session_id":"` + uuid.NewString() + `"}`: "/file_id exactly_one",
		`{"file_id":"` + uuid.NewString() + `","filename":"a.txt"}`:                      "/file_id exactly_one",
		`{"turn_id":"` + uuid.NewString() + `"}`:                                         "/file_id exactly_one",
	} {
		r := s.get(t, call{method: "POST", path: "files/download", body: body})
		var wrong []string
		for _, v := range r.Error.Violations {
			wrong = append(wrong, v.Param+" "+v.Rule)
		}
		if got := strings.Join(wrong, ", "); r.status != 400 || got != want {
			t.Errorf("%s: %d %s, want %s", body, r.status, got, want)
		}
	}
}

func TestATicketIsMadeOnce(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	c := call{method: "POST", path: "files", body: `{"filename":"a.txt","mime":"text/plain","size":5}`,
		header: []string{"Idempotency-Key", "one"}}
	first, again := s.get(t, c), s.get(t, c)
	if first.status != 201 || again.status != 201 || first.text != again.text || first.header.Get("Idempotent-Replayed") != "" ||
		again.header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("%d %s\n%d %s", first.status, first.text, again.status, again.text)
	}
	c.body = strings.Replace(c.body, "5", "6", 1)
	if r := s.get(t, c); r.status != 422 || r.Error.Code != "IDEMPOTENCY_KEY_REUSED" {
		t.Errorf("another body: %d %s", r.status, r.text)
	}
	c.header[1] = strings.Repeat("x", 256)
	if r := s.get(t, c); r.status != 400 {
		t.Errorf("too long a key: %d", r.status)
	}
}

func TestWrongBytesAreRefused(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	for body, want := range map[string]int{"Hell": 422, "Hello!": 422, "%PDF-": 422, "#!/sh": 422, "Hello": 200} {
		tk := s.ticket(t, "a.txt", 5)
		if r := s.put(t, tk.Upload.URL, body, "Content-Encoding", "gzip"); r.status != 415 {
			t.Errorf("compressed: %d", r.status)
		}
		r := s.put(t, tk.Upload.URL, body)
		if r.status != want || want == 422 && (r.Error.Code != "FILE_REJECTED" || !strings.Contains(r.text, `"status":"rejected"`)) {
			t.Errorf("%s: %d %s", body, r.status, r.text)
		}
		if want == 422 {
			if r := s.put(t, tk.Upload.URL, "Hello"); r.status != 422 {
				t.Errorf("%s, then right: %d", body, r.status)
			}
			if r := s.get(t, call{method: "POST", path: "files/download", body: fmt.Sprintf(`{"file_id":%q}`,
				tk.FileID)}); r.status != 404 || r.Error.Code != "FILE_NOT_FOUND" {
				t.Errorf("%d %s", r.status, r.text)
			}
		}
	}
}

func TestProducedFilesAreFound(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	id := uuid.MustParse(sessionOf(t, s.say(t, "@text 1 delta").rest()[0]))
	one, two := uuid.New(), uuid.New()
	for i, turn := range []uuid.UUID{one, one, two} {
		if _, err := s.Files.Produce(t.Context(), s.Workspace.ID, id, turn, fmt.Sprint(i), fmt.Sprintf("out-%d.txt", i), "",
			strings.NewReader("Hello")); err != nil {
			t.Fatal(err)
		}
	}
	for narrow, want := range map[string]string{
		"":                                      "out-2.txt out-1.txt out-0.txt ",
		`,"turn_id":"` + one.String() + `"`:     "out-1.txt out-0.txt ",
		`,"filename":"out-2.txt"`:               "out-2.txt ",
		`,"filename":"none.txt"`:                "",
		`,"filename":"\u0000"`:                  "",
		`,"turn_id":"` + uuid.NewString() + `"`: "",
	} {
		r := s.get(t, call{method: "POST", path: "files/download", body: `{"session_id":"` + id.String() + `"` + narrow + `}`})
		var list []download
		decode(t, r.Data, &list)
		got := ""
		for _, d := range list {
			got += d.Filename + " "
			if f := s.fetch(t, d.DownloadURL); f.text != "Hello" {
				t.Errorf("%s: %d %s", d.Filename, f.status, f.text)
			}
		}
		if r.status != 200 || got != want || list == nil {
			t.Errorf("%s: %d %s", narrow, r.status, r.text)
		}
	}
	page := s.get(t, call{path: "files?direction=out&limit=2"})
	if page.status != 200 || strings.Count(page.text, `"file_id"`) != 2 || !strings.Contains(page.text, `"has_more":true`) {
		t.Errorf("%d %s", page.status, page.text)
	}
	var next struct {
		Cursor string `json:"next_cursor"`
	}
	if err := json.Unmarshal([]byte(page.text), &next); err != nil {
		t.Fatal(err)
	}
	if r := s.get(t, call{path: "files?direction=out&limit=2&cursor=" + next.Cursor}); r.status != 200 ||
		strings.Count(r.text, `"file_id"`) != 1 {
		t.Errorf("%d %s", r.status, r.text)
	}
	if r := s.get(t, call{path: "files?cursor=" + next.Cursor}); r.status != 400 || r.Error.Code != "INVALID_CURSOR" {
		t.Errorf("another list's cursor: %d", r.status)
	}
	s.badList(t, "files?limit=0&direction=up&session=1", "/session unknown, /limit minimum, /direction enum")
}

// TestASenderThatStandsStill checks that a stalled upload gets an error and can be retried.
func TestASenderThatStandsStill(t *testing.T) {
	t.Parallel()
	s := start(t, func(c *server.Config) { c.WriteTimeout = 300 * time.Millisecond })
	tk := s.ticket(t, "a.txt", 5)
	path := strings.TrimPrefix(tk.Upload.URL, s.URL)
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprintf(conn, "PUT %s HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nHel", path)
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if text, _ := io.ReadAll(res.Body); res.StatusCode != 400 || !strings.Contains(string(text), "too slowly") {
		t.Errorf("%d %s", res.StatusCode, text)
	}
	if r := s.put(t, tk.Upload.URL, "Hello"); r.status != 200 {
		t.Errorf("sent again: %d %s", r.status, r.text)
	}
}

// TestFilesThroughATurn checks that every view of a turn lists the files that came with its message
// and those that it produced, with addresses that work.
func TestFilesThroughATurn(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	in, none := s.download(t, "in.txt", "Hello"), uuid.NewString()
	command := body(t, "@text 1 delta\n@call attach_file {\"filename\":\"out.csv\",\"content\":\"a,b\"}\n@text 1 delta",
		fmt.Sprintf(`"attachments":[{"file_id":%q},{"file_id":%q}]`, in.FileID, none))
	opens := func(where string, list []download, want string) {
		t.Helper()
		if len(list) != 1 {
			t.Errorf("%s: %+v", where, list)
			return
		}
		if r := s.fetch(t, strings.TrimPrefix(list[0].DownloadURL, s.URL)); r.status != 200 || r.text != want {
			t.Errorf("%s: %d %s", where, r.status, r.text)
		}
	}
	frames := s.open(t, call{method: "POST", path: "messages", body: command}).rest()
	if got := names(frames); got != "open attachment_rejected text tool_use tool_result text usage attachment done" {
		t.Errorf("%s", got)
	}
	var event struct{ Attachments []download }
	if err := json.Unmarshal([]byte(frames[len(frames)-2].data), &event); err != nil {
		t.Fatal(err)
	}
	opens("the event", event.Attachments, "a,b")

	blocking := s.get(t, call{method: "POST", path: "messages", body: strings.Replace(command, "{", `{"stream":false,`, 1)})
	var answer struct {
		Attachments []download
		Rejected    []struct {
			FileID string `json:"file_id"`
			Code   string
		} `json:"rejected_attachments"`
		Session string `json:"session_id"`
	}
	if err := json.Unmarshal([]byte(blocking.text), &answer); err != nil {
		t.Fatal(err)
	}
	opens("the blocking answer", answer.Attachments, "a,b")
	if len(answer.Rejected) != 1 || answer.Rejected[0].FileID != none || answer.Rejected[0].Code != "FILE_NOT_FOUND" {
		t.Errorf("%s", blocking.text)
	}
	var messages []struct{ Attachments []download }
	if decode(t, s.get(t, call{path: "sessions/" + answer.Session + "/messages"}).Data, &messages); len(messages) != 2 {
		t.Fatalf("%+v", messages)
	}
	opens("the question", messages[0].Attachments, "Hello")
	opens("the answer", messages[1].Attachments, "a,b")
	for _, a := range append(answer.Attachments, messages[0].Attachments...) {
		if !strings.HasPrefix(a.DownloadURL, s.URL) {
			t.Errorf("%s is not an absolute URL", a.DownloadURL)
		}
	}
}

// TestFilesOfAnotherWorkspace checks that a file of another workspace gets the response for a
// missing one.
func TestFilesOfAnotherWorkspace(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	d := s.download(t, "a.txt", "Hello")
	_, foreign := s.Another(t)
	for _, c := range []call{
		{path: "/api/v1/workspaces/another/files/" + d.FileID},
		{method: "POST", path: "/api/v1/workspaces/another/files/download", body: fmt.Sprintf(`{"file_id":%q}`, d.FileID)},
	} {
		c.key = foreign
		if r := s.get(t, c); r.status != 404 || r.Error.Code != "FILE_NOT_FOUND" {
			t.Errorf("%s: %d %s", c.path, r.status, r.text)
		}
	}
	if r := s.get(t, call{path: "/api/v1/workspaces/another/files", key: foreign}); r.status != 200 || string(r.Data) != "[]" {
		t.Errorf("%d %s", r.status, r.text)
	}
	if r := s.get(t, call{path: "files/nonsense"}); r.status != 404 || r.Error.Code != "FILE_NOT_FOUND" {
		t.Errorf("%d %s", r.status, r.text)
	}
}

// generated is a body that is never completely in memory, and that measures memory while it is read
// or written.
type generated struct {
	left int
	peak *uint64
	seen int
}

func (g *generated) Read(p []byte) (int, error) {
	if g.left == 0 {
		return 0, io.EOF
	}
	n := min(len(p), g.left)
	for i := range n {
		p[i] = 'a' + byte((g.left-i)%23)
	}
	g.left -= n
	g.look(n)
	return n, nil
}

func (g *generated) Write(p []byte) (int, error) {
	g.look(len(p))
	return len(p), nil
}

// look collects garbage once per MiB and records the remaining memory.
func (g *generated) look(n int) {
	if g.seen/(1<<20) == (g.seen+n)/(1<<20) {
		g.seen += n
		return
	}
	g.seen += n
	*g.peak = max(*g.peak, liveHeap())
}

// liveHeap collects garbage and returns the size of the rest. The size of the heap would include
// what other goroutines have allocated since, which on a busy machine is much.
func liveHeap() uint64 {
	runtime.GC()
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(live)
	return live[0].Value.Uint64()
}

// TestMemoryIsFlat checks that the service never holds a whole file in memory. It is not parallel:
// memory is measured for the whole process.
func TestMemoryIsFlat(t *testing.T) {
	s := start(t, nil)
	defer debug.SetGCPercent(debug.SetGCPercent(100))
	plain := &http.Client{Transport: &http.Transport{DisableCompression: true}} // not the client that stores responses
	defer plain.CloseIdleConnections()
	const bound = 12 << 20 // buffers, and the rest of the process; a file has 25 MiB
	var up, down uint64
	tk := s.ticket(t, "large.txt", filestore.MaxSize)
	before := liveHeap()

	req, err := http.NewRequestWithContext(t.Context(), "PUT", tk.Upload.URL, &generated{left: filestore.MaxSize, peak: &up})
	if err != nil {
		t.Fatal(err)
	}
	req.ContentLength = filestore.MaxSize
	res, err := plain.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	answer, _ := io.ReadAll(res.Body)
	if res.Body.Close(); res.StatusCode != 200 {
		t.Fatalf("%d %s", res.StatusCode, answer)
	}
	if res, err = plain.Get(s.downloadOf(t, tk.FileID).DownloadURL); err != nil {
		t.Fatal(err)
	}
	sink := &generated{peak: &down}
	n, err := io.Copy(struct{ io.Writer }{sink}, res.Body)
	if res.Body.Close(); err != nil || n != filestore.MaxSize {
		t.Fatalf("%d bytes, %v", n, err)
	}
	for way, peak := range map[string]uint64{"up": up, "down": down} {
		if peak == 0 || peak > before+bound {
			t.Errorf("%s: %d KiB before, at most %d KiB meanwhile", way, before>>10, peak>>10)
		}
		t.Logf("%s: %d KiB before, at most %d KiB meanwhile", way, before>>10, peak>>10)
	}
}

// TestAClientThatDies checks that a client that is killed during an upload leaves no visible file,
// and that its ticket can still be used.
func TestAClientThatDies(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	const size = 1 << 20
	tk := s.ticket(t, "a.txt", size)
	pr, pw := io.Pipe()
	req, err := http.NewRequestWithContext(t.Context(), "PUT", tk.Upload.URL, pr)
	if err != nil {
		t.Fatal(err)
	}
	req.ContentLength = size
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	var wg sync.WaitGroup
	wg.Go(func() {
		if res, err := transport.RoundTrip(req); err == nil {
			res.Body.Close()
		}
	})
	if _, err := pw.Write(bytes.Repeat([]byte("x"), size/2)); err != nil {
		t.Fatal(err)
	}
	pw.CloseWithError(io.ErrClosedPipe)
	wait.Until(t, "all goroutines", wg.Wait)
	if r := s.get(t, call{path: "files/" + tk.FileID}); !strings.Contains(r.text, `"status":"pending"`) {
		t.Errorf("%s", r.text)
	}
	if r := s.put(t, tk.Upload.URL, strings.Repeat("x", size)); r.status != 200 {
		t.Errorf("sent again: %d %s", r.status, r.text)
	}
	for chunks := 0; chunks != 4; { // the chunks of the dead client are removed as soon as the service notices
		if err := s.pool.QueryRow(t.Context(), `SELECT count(*) FROM file_chunks`).Scan(&chunks); err != nil {
			t.Fatal(err)
		}
	}
}
