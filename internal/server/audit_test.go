package server_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-server/parley/internal/actor"
	"github.com/parley-server/parley/internal/server"
	"github.com/parley-server/parley/internal/server/rest"
	"github.com/parley-server/parley/internal/store/permission"
	"github.com/parley-server/parley/internal/store/vault"
	"github.com/parley-server/parley/internal/testing/apitest"
	"github.com/parley-server/parley/internal/testing/dbtest"
	"github.com/parley-server/parley/internal/testing/wait"
)

var auditMeasure = flag.String("audit.measure", "", "DSN of a filled database, on which the questions of docs/audit.md are timed")

// auditRows are the rows of the questions of docs/audit.md, columns joined by |. Names of
// variables in capitals stand for their values, and ID for another id.
var auditRows = map[int]string{
	1: "message|@say Looking.; open|; started|first; tool_verdict|allowed built_in; tool_use|read wiki page security; " +
		"reference|security; tool_result|wiki_read ok; " +
		"tool_verdict|allowed pattern wiki_write(notes/**); tool_use|write wiki page notes/a (1 bytes); tool_result|wiki_write ok; " +
		"tool_verdict|denied rule; tool_use|search for x; tool_result|search failed; " +
		"input_required|approval Next.; decision|allowed; started|resumed; tool_verdict|allowed approval; tool_use|gate {}; " +
		"tool_result|gate ok; done|; feedback|bad",
	2:  "{gate}|allowed|key|TestAuditQuestions|bob|; {gate}|denied|key|TestAuditQuestions||Not now.",
	3:  "wiki_read|ok|built_in||f; wiki_write|ok|pattern|wiki_write(notes/**)|f; search|denied|rule||f; gate|ok|approval||t",
	4:  "gate|denied|2; request_secret|failed|1; search|denied|1",
	5:  "SESSION|anna",
	6:  "@say Looking.|key|TestAuditQuestions|anna|rest|127.0.0.1|REQUEST",
	7:  "TURN|ok",
	8:  "CANCELED|key|KEY|rest|cancel-1",
	9:  "default|1|||builtin/guide|3",
	10: "TURN|resumed; ID|resumed; ID|resumed; ID|resumed",
	11: "LATE|{gate}",
	12: "API_TOKEN|to call the API|skipped|key",
	13: "produced|report.csv|text/csv|5|ready",
	14: "anna|1|t; |4|t",
	15: "TestAuditQuestions|active|5|3|t",
	16: "rule|search|||deny|added|command|root; pattern|wiki_write|wiki_write(notes/**)|||added|command|root",
	17: "agent_versions|insert|database|ROLE|1; agents|insert|database|ROLE|1; allowlist|insert|command|root|1; " +
		"api_keys|insert|database|ROLE|1; credentials|insert|command|root|1; credentials|update|command|root|1; " +
		"documents|insert|database|ROLE|2; tool_rules|insert|command|root|1; workspaces|insert|database|ROLE|1; " +
		"workspaces|update|database|ROLE|1",
	18: "SESSION|turn.completed|12|connection refused",
	19: "@say Looking.|bad|It is short.|key",
	20: "0",
}

// TestAuditQuestions runs every query of docs/audit.md on conversations over HTTP and compares the
// rows.
func TestAuditQuestions(t *testing.T) {
	t.Parallel()
	questions := auditQuestions(t)
	if *auditMeasure != "" {
		measureQuestions(t, *auditMeasure, questions)
		return
	}
	s, variables := auditedService(t)
	role := s.Pool.Config().ConnConfig.User
	for n, sql := range questions {
		rows, err := s.Pool.Query(t.Context(), withVariables(sql, variables), pgx.QueryExecModeSimpleProtocol) // columns as text
		if err != nil {
			t.Fatal(err)
		}
		got, err := rowsText(rows)
		if err != nil {
			t.Errorf("question %d: %v", n, err)
		}
		for name, id := range variables {
			got = strings.ReplaceAll(got, id, strings.ToUpper(name))
		}
		got = strings.ReplaceAll(auditID.ReplaceAllString(got, "ID"), "database|"+role, "database|ROLE")
		if got != auditRows[n] {
			t.Errorf("question %d has the rows\n%s\nwant\n%s", n, got, auditRows[n])
		}
	}
}

var (
	auditQuestion = regexp.MustCompile("(?s)### (\\d+)\\. [^\n]+\n.*?```sql\n(.*?)```")
	auditID       = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f-]{21}`)
)

// auditQuestions reads the queries of the page by their numbers.
func auditQuestions(t *testing.T) map[int]string {
	t.Helper()
	page, err := os.ReadFile("../../docs/audit.md")
	if err != nil {
		t.Fatal(err)
	}
	questions := make(map[int]string)
	for _, m := range auditQuestion.FindAllStringSubmatch(string(page), -1) {
		var n int
		fmt.Sscan(m[1], &n)
		questions[n] = m[2]
	}
	if len(questions) != 20 {
		t.Fatalf("docs/audit.md has %d questions", len(questions))
	}
	return questions
}

// withVariables replaces the variables of psql.
func withVariables(sql string, variables map[string]string) string {
	for name, value := range variables {
		sql = strings.ReplaceAll(sql, ":'"+name+"'", "'"+value+"'")
	}
	return sql
}

// rowsText joins columns by | and rows by ;. Of a text it shows the first line.
func rowsText(rows pgx.Rows) (string, error) {
	defer rows.Close()
	var lines []string
	for rows.Next() {
		var columns []string
		for _, raw := range rows.RawValues() {
			first, _, _ := strings.Cut(string(raw), "\n")
			columns = append(columns, first)
		}
		lines = append(lines, strings.Join(columns, "|"))
	}
	return strings.Join(lines, "; "), rows.Err()
}

// auditedService holds conversations over HTTP: one with all kinds of tool calls, one canceled, one
// denied, one without an answer, and one that asks for a secret.
func auditedService(t *testing.T) (s *apitest.Chats, variables map[string]string) {
	t.Helper()
	s = apitest.NewChats(t, apitest.ChatOptions{Window: 10 * time.Minute, Wiki: true}, func(srv *server.Server) server.Routes {
		routes, err := rest.New(srv, nil)
		if err != nil {
			t.Fatal(err)
		}
		return routes
	})
	ws := s.Workspace.ID
	if _, err := s.Wiki.Put(t.Context(), ws, "wiki/security.md", "# Security\n\nLock the door."); err != nil {
		t.Fatal(err)
	}
	root := actor.With(t.Context(), actor.Actor{Kind: actor.Command, Name: "root"})
	rules := permission.New(s.Pool)
	if err := rules.Set(root, ws, "search", permission.Deny); err != nil {
		t.Fatal(err)
	}
	if _, err := rules.AddRule(root, permission.Rule{Workspace: ws, Pattern: "wiki_write(notes/**)"}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Vault.Register(root, ws, vault.Registration{Name: "API_TOKEN", Hosts: []string{"example.com"}}, "cli:root"); err != nil {
		t.Fatal(err)
	}
	post := func(path, body string, header ...string) apitest.Reply {
		t.Helper()
		r := s.Get(t, apitest.Call{Path: "/api" + path, Body: body, Header: header})
		if r.Status/100 != 2 {
			t.Fatalf("%s: %d %s", path, r.Status, r.Text)
		}
		return r
	}
	// say sends a message and returns its session and the question at which it stops.
	say := func(script, members string, header ...string) (session, question string) {
		t.Helper()
		command, _ := json.Marshal(script)
		r := post("/v1/workspaces/demo/messages", fmt.Sprintf(`{"command":%s,"stream":false%s}`, command, members), header...)
		asked, _ := r.Body["input_required"].(map[string]any)
		session, _ = r.Body["session_id"].(string)
		question, _ = asked["approval_id"].(string)
		return session, question
	}
	// ended waits for the end of a session's turn.
	ended := func(session string) (turn string) {
		t.Helper()
		wait.For(t, "the end of the turn", func() bool {
			return s.Pool.QueryRow(t.Context(), `SELECT id::text FROM turns WHERE session_id = $1 AND finished_at IS NOT NULL`,
				session).Scan(&turn) == nil
		})
		return turn
	}
	s.Gate.Leave <- struct{}{}

	session, question := say("@say Looking.\n@call wiki_read {\"page\":\"security\"} wiki_write "+
		"{\"page\":\"notes/a\",\"content\":\"x\"} search {\"query\":\"x\"}\n@say Next.\n@call gate {}\n@say Done.",
		`,"user":"anna"`, "X-Request-Id", "request-1")
	post("/workspaces/demo/approvals/"+question+"/decide", `{"decision":"allow","actor":"bob"}`)
	turn := ended(session)
	post("/v1/workspaces/demo/sessions/"+session+"/turns/"+turn+"/feedback", `{"rating":"bad","note":"It is short."}`)

	denied, question := say("@call gate {}\n@say No.", "")
	post("/workspaces/demo/approvals/"+question+"/decide", `{"decision":"deny","reason":"Not now."}`)
	ended(denied)
	canceled, _ := say("@call gate {}", "")
	post("/v1/workspaces/demo/sessions/"+canceled+"/cancel", `{}`, "X-Request-Id", "cancel-1")
	canceledTurn := ended(canceled)
	secret, question := say("@call request_secret {\"key_name\":\"API_TOKEN\",\"reason\":\"to call the API\"}\n@say Done.", "")
	post("/v1/workspaces/demo/approvals/"+question+"/secret", `{"action":"skip"}`)
	ended(secret)
	late, question := say("@call gate {}\n@say Late.", "")
	dbtest.Tamper(t, s.Pool, `UPDATE approvals SET expires_at = now() - interval '1 second' WHERE id = $1`, question)
	ended(late)

	// What these protocols and tools of the test do not make.
	for _, sql := range []string{
		`INSERT INTO files (id, workspace_id, direction, state, filename, mime, size, unrestricted, session_id, turn_id, call_id)
			SELECT gen_random_uuid(), workspace_id, 'out', 'ready', 'report.csv', 'text/csv', 5, false, session_id, id, 'call_9' FROM turns WHERE id = $1`,
		`INSERT INTO callbacks (id, workspace_id, session_id, turn_id, url, metadata) SELECT id, workspace_id, session_id, id, '', ` +
			`'{}' FROM turns WHERE id = $1`,
		`INSERT INTO callback_deliveries (id, callback_id, workspace_id, type, seq, status, attempts, next_at) SELECT id, id, ` +
			`workspace_id, 'turn.completed', end_seq, 'failed', 12, NULL FROM turns WHERE id = $1`,
		`INSERT INTO callback_attempts (delivery_id, n, at, latency_ms, error) SELECT id, 12, now(), 3, 'connection refused' FROM turns ` +
			`WHERE id = $1`,
	} {
		dbtest.Tamper(t, s.Pool, sql, turn)
	}
	var key string
	if err := s.Pool.QueryRow(t.Context(), `SELECT key_id FROM turns WHERE id = $1`, turn).Scan(&key); err != nil {
		t.Fatal(err)
	}
	return s, map[string]string{"session": session, "turn": turn, "canceled": canceledTurn, "late": late, "key": key, "request": "request-1"}
}

// measureQuestions prints how long each query takes on another database, in two runs.
func measureQuestions(t *testing.T, dsn string, questions map[int]string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	variables := make(map[string]string)
	var session, request string
	if err := conn.QueryRow(t.Context(), `SELECT session_id, origin ->> 'request_id' FROM turns ORDER BY created_at DESC LIMIT 1`).Scan(
		&session, &request); err != nil {
		t.Fatal(err)
	}
	variables["session"], variables["request"] = session, request
	for n := 1; n <= len(questions); n++ {
		sql := withVariables(questions[n], variables)
		for range 2 { // the second time with what the first one has cached
			begin := time.Now()
			rows, err := conn.Query(t.Context(), sql)
			if err != nil {
				t.Fatal(err)
			}
			count := 0
			for rows.Next() {
				count++
			}
			took := time.Since(begin)
			t.Logf("question %2d: %7.1f ms, %d rows, %v", n, float64(took.Microseconds())/1000, count, rows.Err())
		}
	}
}
