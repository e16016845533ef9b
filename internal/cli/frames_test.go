package cli_test

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
)

// TestFramesAreTheBytesOfTheStream compares audit.frames with the response that a client received, and
// shows the stored answer in place of deltas that are gone.
func TestFramesAreTheBytesOfTheStream(t *testing.T) {
	t.Parallel()
	sh, srv, dsn := world(t)
	key := ""
	for _, v := range sh.environ {
		if k, ok := strings.CutPrefix(v, "PARLEY_API_KEY="); ok {
			key = k
		}
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, srv.url+"/api/v1/workspaces/test/messages",
		strings.NewReader(
			`{"command":"@say \"quoted\" and ünïcode\n@call read {\"path\":\"none.md\"}\n@call attach_file {\"path\":\"none.md\"}\n@say more"}`))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+key)
	r.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	received, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		t.Fatalf("%d, %v: %s", res.StatusCode, err, received)
	}
	db, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close(t.Context())
	frames := func() (all []byte, stored int) {
		t.Helper()
		err := db.QueryRow(t.Context(), `SELECT string_agg(f.bytes, '' ORDER BY f.n), count(*) FILTER (WHERE f.stored)
			FROM sessions s CROSS JOIN LATERAL audit.frames(s.id) WITH ORDINALITY AS f (turn_id, seq, event, at, stored, bytes, n)`).Scan(
			&all, &stored)
		if err != nil {
			t.Fatal(err)
		}
		return all, stored
	}
	if all, stored := frames(); !bytes.Equal(all, received) || stored != 0 {
		t.Errorf("%d stored frames:\n%s\nreceived:\n%s", stored, all, received)
	}
	if _, err := db.Exec(t.Context(), `SET session_replication_role = replica; DELETE FROM events WHERE delta`); err != nil {
		t.Fatal(err)
	}
	if all, stored := frames(); stored != 1 || !bytes.Contains(all, []byte(`data: {"v":1,"text":"\"quoted\" and ünïcode`)) {
		t.Errorf("%d stored frames:\n%s", stored, all)
	}
}
