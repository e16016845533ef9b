package web

import (
	"net/http"
	"strings"
	"testing"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/session"
	"github.com/parley-server/parley/internal/store/account"
	"github.com/parley-server/parley/internal/store/apikey"
)

// savedFolder stores a folder of a session as a turn's commands leave it.
const savedFolder = `WITH d AS (
    INSERT INTO workdirs (session_id, workspace_id, epoch, version, files, bytes) VALUES ($1, $2, 1, 1, 3, 30)
), n AS (
    SELECT row_number() OVER () AS n, path, convert_to('content of ' || path, 'UTF8') AS data
    FROM unnest(ARRAY['notes.txt', 'reports/2026/q3 <b>.csv', 'reports/<img src=x onerror=hacked=1>']) AS path
), b AS (
    INSERT INTO work_blobs (id, workspace_id, sha256, size, loose_at) SELECT gen_random_uuid(), $2, sha256(data), octet_length(data), NULL FROM n RETURNING id, sha256
), c AS (
    INSERT INTO work_chunks (blob_id, n, data) SELECT b.id, 0, n.data FROM b JOIN n ON sha256(n.data) = b.sha256
)
INSERT INTO work_files (session_id, workspace_id, path, kind, executable, size, sha256)
SELECT $1, $2, convert_to(path, 'UTF8'), 'file', false, octet_length(data), sha256(data) FROM n`

// TestFilesOfSessions saves a view, reads the feedback on an answer, browses the folder of a session
// and downloads from it, and deletes a file of the workspace. Names are never HTML.
func TestFilesOfSessions(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.say(t, `@call attach_file {"filename":"<img src=x onerror=hacked=1>.txt","content":"first"}`+"\n@say Here it is.",
		`"caller_id":"customer-7","user":"kim@halden.example","metadata":{"plan":"gold"}`)
	w.say(t, "What can you do?", `"user":"max@halden.example"`)
	list, err := w.Sessions.Summaries(t.Context(), w.Workspace.ID, session.SummaryQuery{Limit: 10, User: new("kim@halden.example")})
	if err != nil || len(list.Data) != 1 {
		t.Fatalf("%d sessions, %v", len(list.Data), err)
	}
	id, turn := list.Data[0].SessionID, *list.Data[0].TurnID
	if _, err := w.Pool.Exec(t.Context(), savedFolder, id, w.Workspace.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Sessions.Rate(t.Context(), w.Workspace.ID, id, turn, event.Feedback{Rating: event.Bad,
		Note: "wrong <script>hacked=1</script>", Key: w.Key[4:12]}); err != nil {
		t.Fatal(err)
	}
	p := w.signIn(t, account.NewUser{Email: "edda@halden.example", Name: "Edda Berg"}, apikey.Editor)
	p.Go(w.URL + "/w/demo/sessions?user=kim%40halden.example&meta=plan%3Dgold")
	if n := len(p.MustElements("td a.t")); n != 1 {
		t.Errorf("%d sessions match", n)
	}
	p.Fill("[name=name]", "Kim <img src=x onerror=hacked=1>")
	p.Press("button", "Save these filters")
	p.See(".note", "saved")
	p.See(".seg a[aria-current]", "Kim <img")
	p.Review("sessions-view")
	p.Press(".seg a", "All")
	if n := len(p.MustElements("td a.t")); n != 2 {
		t.Errorf("%d sessions", n)
	}
	other := w.signIn(t, account.NewUser{Email: "vera@halden.example", Name: "Vera Holm"}, apikey.Viewer)
	other.Go(w.URL + "/w/demo/sessions")
	if strings.Contains(other.MustElement(".seg").MustText(), "Kim") {
		t.Error("another member sees the view")
	}
	p.Press(".seg a", "Kim <img")
	p.Press("button", "Delete this view")
	p.See(".note", "View deleted")

	p.Go(w.URL + "/w/demo/sessions/" + id.String())
	p.See(".card-f", "wrong <script>")
	p.Review("session-feedback")
	p.Press(".tabs a", "Files")
	p.See("li", "onerror=hacked=1_.txt")
	p.Review("session-files")
	p.Press("td a.t", "reports/")
	p.See("td", "<img src=x onerror=hacked=1>")
	p.Press("td a.t", "2026/")
	p.See("[aria-current=page]", "2026")
	unhurt(t, p)
	address := p.MustElement("td a.btn").MustProperty("href").Str()
	if got := download(t, p, address); got != "content of reports/2026/q3 <b>.csv" {
		t.Errorf("the download has %q", got)
	}
	if res := w.request(t, http.MethodGet, "/w/demo/sessions/"+id.String()+"/file?path=..%2Fetc%2Fpasswd",
		w.cookie(t, account.NewUser{Email: "a@halden.example"}, apikey.Owner), nil); res.StatusCode != http.StatusNotFound {
		t.Errorf("a path that does not exist: %d", res.StatusCode)
	}

	p.Go(w.URL + "/w/demo/files?direction=out")
	p.Review("files")
	unhurt(t, p)
	if got := download(t, p, p.MustElement("td a.btn").MustProperty("href").Str()); got != "first" {
		t.Errorf("the file has %q", got)
	}
	p.Press("a.danger", "Delete")
	p.Press("button.fill", "Delete file")
	p.See("h2", "No files")
	other.Go(w.URL + "/w/demo/files")
	other.See("h2", "No files")
}
