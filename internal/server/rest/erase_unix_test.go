//go:build unix

package rest_test

import (
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/parley-server/parley/docs"
	"github.com/parley-server/parley/internal/testing/dbtest"
	"github.com/parley-server/parley/internal/testing/dbtest/canary"
	"github.com/parley-server/parley/internal/testing/slow"
	"github.com/parley-server/parley/internal/toolenv/workdir"
)

// quoted returns a value as JSON.
func quoted(t testing.TB, value string) string {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// tables lists the tables that contain a word, in any column.
func (s *service) tables(t testing.TB, word string) (found []string) {
	t.Helper()
	rows, err := s.pool.Query(t.Context(), `SELECT c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
		WHERE n.nspname = 'public' AND c.relkind IN ('r', 'p') AND NOT c.relispartition ORDER BY 1`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var all []string
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			t.Fatal(err)
		}
		all = append(all, name)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	for _, name := range all {
		var n int
		sql := fmt.Sprintf(`SELECT count(*) FROM %q AS row WHERE row::text LIKE '%%%s%%' OR row::text LIKE '%%%x%%'`, name, word, word)
		if err := s.pool.QueryRow(t.Context(), sql).Scan(&n); err != nil {
			t.Fatal(err)
		}
		if n > 0 {
			found = append(found, name)
		}
	}
	return found
}

// everywhere puts a value into every place that a caller or an agent can write to, and returns the
// session. Its second turn waits for an approval.
func (s *service) everywhere(t *testing.T, value string) string {
	t.Helper()
	word, v := value[:26], quoted(t, value)
	file := s.download(t, word+".txt", value)
	command := strings.Join([]string{"@say " + value, "@call gate " + `{"n":` + v + `}`, "@call look " + `{"at":` + v + `}`,
		"@call attach_file " + fmt.Sprintf(`{"filename":"%s.txt","content":%s}`, word, v), "@text 300 deltas of 40 bytes",
		`@structured {"a":` + v + "}"}, "\n")
	st := s.open(t, call{method: "POST", path: "messages", header: []string{"Idempotency-Key", value},
		body: body(t, command, `"stream":true`, `"caller_id":`+v,
			`"attachments":[{"file_id":"`+file.FileID+`"},{"file_id":"`+uuid.NewString()+`"}]`,
			`"response_schema":{"type":"object","description":`+v+`,"properties":{"a":{"type":"string"}}}`,
			`"callback":{"url":"https://hook.invalid/`+url.PathEscape(value)+`","metadata":{"about":`+v+`}}`)})
	var id string
	for f, ok := st.next(); ok; f, ok = st.next() {
		switch f.event {
		case "open":
			id = sessionOf(t, f)
		case "input_required":
			var q question
			if err := json.Unmarshal([]byte(f.data), &q); err != nil {
				t.Fatal(err)
			}
			answer := allow
			if q.Operations[0].Tool == "gate" {
				answer = `{"decision":"deny","reason":` + v + `}`
			}
			if r := s.get(t, call{method: "POST", path: q.DecideURL, body: answer, header: []string{"Idempotency-Key",
				value + q.ApprovalID}}); r.status != 200 {
				t.Fatal(r.text)
			}
		}
	}
	s.say(t, "@call gate {\"n\":"+v+"}", `"caller_id":`+v).asked()
	s.work(t, id, word, value)
	return id
}

// work puts a file into the folder of a session's agent.
func (s *service) work(t *testing.T, session, name, content string) {
	t.Helper()
	var ws uuid.UUID
	if err := s.pool.QueryRow(t.Context(), `SELECT workspace_id FROM sessions WHERE id = $1`, session).Scan(&ws); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	f, err := workdir.New(s.pool, workdir.Options{}).Restore(t.Context(), workdir.Claim{Workspace: ws, Session: uuid.MustParse(session),
		Epoch: 1}, dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(content, filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Save(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// TestErasingLeavesNothing erases one of two sessions, each of which has a word of its own in every
// place that can hold one. Then no table and no dump contains the erased session's word; and once
// PostgreSQL has rewritten its tables as docs/guides/retention.md describes, neither do its data
// files. The other session's word is unchanged.
func TestErasingLeavesNothing(t *testing.T) {
	t.Parallel()
	slow.Test(t, "starts PostgreSQL")
	server := dbtest.NewServer(t)
	dsn := server.DSN()
	s := process(t, dbtest.Pool(t, dsn), nil, nil, asking(time.Minute))
	value, others := canary.New(), canary.New()
	id := s.everywhere(t, value)
	s.everywhere(t, others)
	await(t, s, `SELECT count(*) FROM callback_deliveries WHERE body IS NOT NULL`, 4) // a question is reported as well
	s.exec(t, `ANALYZE`)                                                              // samples of the current rows

	before := s.tables(t, value[:26])
	if want := strings.Fields(
		"approvals callback_deliveries callbacks events file_chunks files idempotency_keys idempotent_answers messages sessions turns " +
			"work_chunks work_files"); !slices.Equal(before, want) {
		t.Errorf("the word is in %v, want %v", before, want)
	}
	if canary.Find(t, value, canary.Server(server, dsn)[0]) == nil {
		t.Error("the search finds nothing in the dump")
	}
	if _, err := s.Sessions.EraseContent(t.Context(), uuid.MustParse(id), "cli:test"); err != nil {
		t.Fatal(err)
	}
	if after := s.tables(t, value[:26]); after != nil {
		t.Errorf("the word is still in %v", after)
	}
	canary.Sweep(t, value, canary.Server(server, dsn)[0])
	if after := s.tables(t, others[:26]); !slices.Equal(after, before) {
		t.Errorf("the other session only has %v left", after)
	}

	page, err := docs.Files.ReadFile("guides/retention.md")
	if err != nil {
		t.Fatal(err)
	}
	_, recipe, _ := strings.Cut(string(page), "```sql\n")
	recipe, _, _ = strings.Cut(recipe, "```")
	for sql := range strings.SplitSeq(strings.TrimSpace(recipe), ";") {
		s.exec(t, sql)
	}
	canary.Sweep(t, value, canary.Server(server, dsn)[1])
}

// await waits until a query counts at least n.
func await(t testing.TB, s *service, sql string, n int) {
	t.Helper()
	deadline := time.After(20 * time.Second)
	for {
		var got int
		if err := s.pool.QueryRow(t.Context(), sql).Scan(&got); err != nil {
			t.Fatal(err)
		}
		if got >= n {
			return
		}
		select {
		case <-deadline:
			t.Fatalf("%s stays %d", sql, got)
		case <-time.After(10 * time.Millisecond):
		}
	}
}
