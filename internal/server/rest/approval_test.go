package rest_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/store/apikey"
	"github.com/parley-server/parley/internal/store/vault"
	"github.com/parley-server/parley/internal/testing/wait"
	"github.com/parley-server/parley/internal/turn"
)

// question is the data of an input_required frame.
type question struct {
	Kind       string
	Plan       string
	KeyName    string `json:"key_name"`
	Operations []struct {
		Tool, Summary    string
		Input            json.RawMessage
		ToolUseID        string `json:"tool_use_id"`
		SuggestedPattern string `json:"suggested_pattern"`
	}
	ApprovalID string    `json:"approval_id"`
	DecideURL  string    `json:"decide_url"`
	SecretURL  string    `json:"secret_url"`
	ExpiresAt  time.Time `json:"expires_at"`
}

// asked reads to the next question.
func (s *stream) asked() question {
	s.t.Helper()
	frames := s.until("input_required")
	var q question
	if err := json.Unmarshal([]byte(frames[len(frames)-1].data), &q); err != nil || q.ApprovalID == "" {
		s.t.Fatalf("%s: %v", frames[len(frames)-1].data, err)
	}
	return q
}

// decision is the response to an answered question.
type decision struct {
	ApprovalID string `json:"approval_id"`
	Status     string
	DecidedBy  *struct {
		KeyID string `json:"key_id"`
	} `json:"decided_by"`
	SessionID string  `json:"session_id"`
	EventsURL string  `json:"events_url"`
	Already   bool    `json:"already_decided"`
	Pattern   *string `json:"allowlist_pattern"`
	KeyName   string  `json:"key_name"`
}

// decide answers a question and returns the response.
func (s *service) decide(t testing.TB, url, body string) (decision, reply) {
	t.Helper()
	r := s.get(t, call{method: "POST", path: url, body: body})
	var d decision
	if r.status == 200 {
		if err := json.Unmarshal(r.Data, &d); err != nil {
			t.Fatal(err)
		}
	}
	return d, r
}

const allow, deny = `{"decision":"allow"}`, `{"decision":"deny"}`

func TestApprovedCallsRunAsTheyWereAsked(t *testing.T) {
	t.Parallel()
	s := startTurns(t, nil, asking(time.Minute))
	st := s.say(t, "@say I open both gates.\n@call gate {\"n\":1} gate {\"n\":2}\n@say Open.")
	id := sessionOf(t, st.until("open")[0])
	q := st.asked()
	if q.Kind != "approval" || q.Plan != "I open both gates." || len(q.Operations) != 2 || q.Operations[0].Tool != "gate" ||
		string(q.Operations[1].Input) != `{"n":2}` ||
		q.DecideURL != "/api/workspaces/"+s.Workspace.ID.String()+"/approvals/"+q.ApprovalID+"/decide" || time.Until(q.ExpiresAt) > time.Minute {
		t.Errorf("%+v", q)
	}
	inbox := s.get(t, call{path: "approvals?status=pending"})
	if !strings.Contains(string(inbox.Data), q.ApprovalID) || !strings.Contains(inbox.text, `"seconds_left":60`) {
		t.Errorf("the inbox is %s", inbox.text)
	}
	if list := s.get(t, call{path: "sessions"}); !strings.Contains(list.text, `"pending":{"kind":"approval","approval_id":"`+
		q.ApprovalID) || !strings.Contains(list.text, `"thinking"`) {
		t.Errorf("the session is %s", list.text)
	}
	if busy := s.get(t, call{method: "POST", path: "messages", body: body(t, "hello", `"session_id":"`+id+`"`)}); busy.status != 409 ||
		busy.Error.Turn["status"] != "waiting" || busy.Error.Turn["pending"] == nil {
		t.Errorf("%d %s", busy.status, busy.text)
	}
	select {
	case <-s.Gate.Entered:
		t.Fatal("a tool ran before it was allowed")
	default:
	}
	d, r := s.decide(t, q.DecideURL, allow)
	if d.Status != "allowed" || d.Already || d.SessionID != id || d.Pattern != nil || d.DecidedBy == nil ||
		d.DecidedBy.KeyID != s.Key[4:12] || !strings.HasSuffix(d.EventsURL, id+"/events") {
		t.Errorf("%d %s", r.status, r.text)
	}
	s.Gate.Leave <- struct{}{}
	s.Gate.Leave <- struct{}{}
	if got := names(st.rest()); got != "tool_use tool_result tool_use tool_result text usage done" {
		t.Errorf("then came %s", got)
	}
	if d, r := s.decide(t, q.DecideURL, allow); d.Status != "allowed" || !d.Already {
		t.Errorf("the same again: %s", r.text)
	}
	if _, r := s.decide(t, q.DecideURL, `{"decision":"allow","allowlist_pattern":"wiki_write(**)"}`); r.status != 409 && r.status != 400 {
		t.Errorf("a late pattern: %d %s", r.status, r.text)
	}
	if _, r := s.decide(t, q.DecideURL, deny); r.status != 409 || r.Error.Code != "APPROVAL_ALREADY_DECIDED" ||
		!strings.Contains(r.text, `"status":"allowed"`) {
		t.Errorf("the opposite: %s", r.text)
	}
	one := s.get(t, call{path: "approvals/" + q.ApprovalID})
	if !strings.Contains(one.text, `"status":"allowed"`) || !strings.Contains(one.text, `"seconds_left":0`) {
		t.Errorf("%s", one.text)
	}
}

func TestDeniedCallsDoNotRun(t *testing.T) {
	t.Parallel()
	s := startTurns(t, nil, asking(time.Minute))
	st := s.say(t, "@call gate {}\n@say Fine.")
	q := st.asked()
	if _, r := s.decide(t, q.DecideURL, `{"decision":"deny","reason":"Not before Monday."}`); r.status != 200 {
		t.Fatalf("%d %s", r.status, r.text)
	}
	rest := st.rest()
	if names(rest) != "tool_use tool_result text usage done" || !strings.Contains(rest[1].data,
		`"ok":false,"output":"This was denied: Not before Monday."`) {
		t.Errorf("%v", rest)
	}
	if len(s.Gate.Entered) != 0 {
		t.Error("the denied call ran")
	}
}

// TestOneDecisionOfAHundred checks concurrent answers on several replicas: one of them decides, and
// the call runs once or never.
func TestOneDecisionOfAHundred(t *testing.T) {
	t.Parallel()
	s := startTurns(t, nil, asking(time.Minute))
	other := s.replica(t, asking(time.Minute))
	st := s.say(t, `@call gate {"n":7}`+"\n@say Done.")
	q := st.asked()
	type result struct {
		wanted string
		d      decision
		r      reply
	}
	results := make(chan result, 100)
	var wg sync.WaitGroup
	for i := range 100 {
		wg.Go(func() {
			at, wanted := s, allow
			if i%2 == 1 {
				at = other
			}
			if i%4 < 2 {
				wanted = deny
			}
			d, r := at.decide(t, q.DecideURL, wanted)
			results <- result{wanted, d, r}
		})
	}
	wait.Until(t, "all goroutines", wg.Wait)
	close(results)
	first, standing := 0, ""
	for res := range results {
		if res.r.status == 200 && !res.d.Already {
			first++
			standing = res.d.Status
		}
	}
	if first != 1 {
		t.Fatalf("%d decisions", first)
	}
	s.Gate.Leave <- struct{}{}
	rest := st.rest()
	if got := names(rest); got != "tool_use tool_result text usage done" {
		t.Errorf("then came %s", got)
	}
	if ran := len(s.Gate.Entered); ran != map[string]int{"allowed": 1, "denied": 0}[standing] {
		t.Errorf("%s, and it ran %d times", standing, ran)
	}
	var decisions, jobs int
	if err := s.pool.QueryRow(t.Context(), `SELECT count(*) FROM events WHERE kind = 'decision'`).Scan(&decisions); err != nil ||
		decisions != 1 {
		t.Errorf("%d decisions on record, %v", decisions, err)
	}
	if err := s.pool.QueryRow(t.Context(), `SELECT count(*) FROM river_job WHERE kind = 'turn'`).Scan(&jobs); err != nil || jobs != 2 {
		t.Errorf("%d jobs for one start and one resume, %v", jobs, err)
	}
}

// TestQuickestAnswerCounts checks an answer that arrives before the reader of the question has
// continued.
func TestQuickestAnswerCounts(t *testing.T) {
	t.Parallel()
	s := startTurns(t, nil, asking(time.Minute))
	for range 20 {
		st := s.say(t, "@call gate {}\n@say Done.")
		s.Gate.Leave <- struct{}{}
		if d, r := s.decide(t, st.asked().DecideURL, allow); d.Status != "allowed" || d.Already {
			t.Fatalf("%d %s", r.status, r.text)
		}
		if got := names(st.rest()); got != "tool_use tool_result text usage done" {
			t.Fatalf("then came %s", got)
		}
		s.Gate.Await(t)
	}
}

func TestUnansweredQuestionsAreDenied(t *testing.T) {
	t.Parallel()
	s := startTurns(t, nil, asking(300*time.Millisecond))
	st := s.say(t, "@call gate {}\n@say I could not.")
	id := sessionOf(t, st.until("open")[0])
	q := st.asked()
	rest := st.rest()
	if names(rest) != "tool_use tool_result text usage done" || !strings.Contains(rest[1].data, "The approval was not answered ") {
		t.Errorf("%v", rest)
	}
	for _, body := range []string{allow, deny} {
		if _, r := s.decide(t, q.DecideURL, body); r.status != 410 || r.Error.Code != "APPROVAL_EXPIRED" ||
			!strings.Contains(r.text, `"status":"expired"`) {
			t.Errorf("%d %s", r.status, r.text)
		}
	}
	if r := s.get(t, call{path: "approvals?status=expired"}); !strings.Contains(r.text, q.ApprovalID) ||
		!strings.Contains(r.text, `"decided_by":null`) {
		t.Errorf("%s", r.text)
	}
	if got := names(s.say(t, "@text 1 delta", `"session_id":"`+id+`"`).rest()); got != "open text usage done" {
		t.Errorf("the session does not continue: %s", got)
	}
}

func TestCancelClosesTheQuestion(t *testing.T) {
	t.Parallel()
	s := startTurns(t, nil, asking(time.Minute))
	st := s.say(t, "@call gate {}")
	id := sessionOf(t, st.until("open")[0])
	q := st.asked()
	if r := s.get(t, call{method: "POST", path: "sessions/" + id + "/cancel"}); !strings.Contains(r.text,
		`"canceled":true,"runner_halt_deferred":false`) {
		t.Errorf("%s", r.text)
	}
	if got := names(st.rest()); got != "usage error done" {
		t.Errorf("then came %s", got)
	}
	if _, r := s.decide(t, q.DecideURL, allow); r.status != 409 || r.Error.Code != "APPROVAL_ALREADY_DECIDED" ||
		!strings.Contains(r.text, `"status":"canceled"`) {
		t.Errorf("%d %s", r.status, r.text)
	}
}

func TestBlockingCallReturnsWithTheQuestion(t *testing.T) {
	t.Parallel()
	s := startTurns(t, nil, asking(time.Minute))
	message := call{method: "POST", path: "messages", body: body(t, "@call gate {}\n@say Done.", `"stream":false`),
		header: []string{"Idempotency-Key", "k"}}
	first := s.get(t, message)
	var a struct {
		Success       bool
		Output        *string
		Error         string
		SessionID     string   `json:"session_id"`
		InputRequired question `json:"input_required"`
	}
	if err := json.Unmarshal([]byte(first.text), &a); err != nil || a.Success || a.Output != nil || a.Error != "input_required" ||
		a.InputRequired.Kind != "approval" {
		t.Fatalf("%s, %v", first.text, err)
	}
	st := s.open(t, call{path: "sessions/" + a.SessionID + "/events"})
	s.Gate.Leave <- struct{}{}
	if d, r := s.decide(t, a.InputRequired.DecideURL, allow); d.Status != "allowed" {
		t.Fatalf("%s", r.text)
	}
	if got := names(st.rest()); got != "open input_required tool_use tool_result text usage done" {
		t.Errorf("the stream is %s", got)
	}
	if again := s.get(t, message); again.text != first.text || again.header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("the repeated call returns %s", again.text)
	}
}

func TestBadDecisions(t *testing.T) {
	t.Parallel()
	s := startTurns(t, nil, asking(time.Minute))
	q := s.say(t, "@call gate {}").asked()
	secret := strings.Replace(q.DecideURL, "/api/", "/api/v1/", 1)
	secret = strings.TrimSuffix(secret, "decide") + "secret"
	for _, c := range []struct{ url, body, want string }{
		{q.DecideURL, `{}`, "/decision required"},
		{q.DecideURL, `{"decision":"maybe"}`, "/decision enum"},
		{q.DecideURL, `{"decision":"deny","allowlist_pattern":"x"}`, "/allowlist_pattern requires"},
		{q.DecideURL, `{"decision":"allow","reason":"x"}`, "/reason requires"},
		{q.DecideURL, `{"decision":7,"reason":8,"x":9}`, "/decision type, /reason type, /x unknown"},
		{q.DecideURL, `{"decision":"deny","reason":"` + strings.Repeat("x", 501) + `"}`, "/reason max_length"},
		{secret, `{}`, "/action required"},
		{secret, `{"action":"provide"}`, "/value required"},
		{secret, `{"action":"skip","value":"12345678"}`, "/value requires"},
		{secret, `{"action":"provide","value":"` + strings.Repeat("x", 64<<10+1) + `"}`, "/value max_length"},
		{secret, `{"action":"provide","value":"abc"}`, "/value min_length"},
		{secret, `{"action":"provide","value":"a\ttab"}`, "/value format"},
		{secret, `{"action":"provide","value":"half of \ud83d a pair"}`, "/value format"},
	} {
		r := s.get(t, call{method: "POST", path: c.url, body: c.body})
		var got []string
		for _, v := range r.Error.Violations {
			got = append(got, v.Param+" "+v.Rule)
		}
		if r.status != 400 || strings.Join(got, ", ") != c.want {
			t.Errorf("%.60s: %d %v, want %s", c.body, r.status, got, c.want)
		}
	}
	for _, pattern := range []string{"wiki_write(x)", "nonsense(", "bash(*)", "gate({})"} {
		text, _ := json.Marshal(pattern)
		if _, r := s.decide(t, q.DecideURL, `{"decision":"allow","allowlist_pattern":`+string(text)+`}`); r.status != 400 ||
			r.Error.Code != "INVALID_ALLOWLIST_PATTERN" {
			t.Errorf("%s: %d %s", pattern, r.status, r.text)
		}
	}
	if r := s.get(t, call{method: "POST", path: secret, body: `{"action":"skip"}`}); r.status != 404 || r.Error.Code != "APPROVAL_NOT_FOUND" {
		t.Errorf("an approval as a secret: %d %s", r.status, r.text)
	}
	for _, id := range []string{uuid.NewString(), "nonsense"} {
		if _, r := s.decide(t, strings.Replace(q.DecideURL, q.ApprovalID, id, 1), allow); r.status != 404 ||
			r.Error.Code != "APPROVAL_NOT_FOUND" {
			t.Errorf("%s: %d %s", id, r.status, r.text)
		}
	}
	if r := s.get(t, call{path: "approvals?status=pending"}); !strings.Contains(r.text, q.ApprovalID) {
		t.Errorf("an invalid decision was applied: %s", r.text)
	}
}

func TestInboxPages(t *testing.T) {
	t.Parallel()
	s := startTurns(t, nil, asking(time.Minute))
	var want []string
	for range 5 {
		want = append([]string{s.say(t, "@call gate {}").asked().ApprovalID}, want...)
	}
	var got []string
	cursor := ""
	for {
		r := s.get(t, call{path: "approvals?limit=2" + cursor})
		var page struct {
			Data []struct {
				ID string `json:"approval_id"`
			}
			Next *string `json:"next_cursor"`
		}
		if err := json.Unmarshal([]byte(r.text), &page); err != nil {
			t.Fatal(err)
		}
		for _, a := range page.Data {
			got = append(got, a.ID)
		}
		if page.Next == nil {
			break
		}
		cursor = "&cursor=" + *page.Next
	}
	if !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// register registers a credential without a value.
func (s *service) register(t testing.TB, name string) {
	t.Helper()
	if _, err := s.Vault.Register(t.Context(), s.Workspace.ID, vault.Registration{Name: name, Hosts: []string{"api.example.com"}},
		"test"); err != nil {
		t.Fatal(err)
	}
}

func TestSecretGoesIntoTheVault(t *testing.T) {
	t.Parallel()
	s := startTurns(t, nil, nil)
	const canary = "c4n4ry-sup3r-s3cr3t"
	s.register(t, "STRIPE_KEY")
	st := s.say(t, `@call request_secret {"key_name":"STRIPE_KEY","reason":"to refund"}`+"\n@say Done.")
	q := st.asked()
	if q.Kind != "secret" || q.KeyName != "STRIPE_KEY" || q.SecretURL != "/api/v1/workspaces/"+s.Workspace.ID.String()+"/approvals/"+
		q.ApprovalID+"/secret" {
		t.Errorf("%+v", q)
	}
	chat := s.Issue(t, s.Workspace, apikey.Chat)
	if r := s.get(t, call{method: "POST", path: q.SecretURL, key: chat, body: `{"action":"skip"}`}); r.status != 403 ||
		r.Error.RequiredScope != "secret" {
		t.Errorf("%d %s", r.status, r.text)
	}
	if r := s.get(t, call{method: "POST", path: q.SecretURL, body: `{"action":"provide","value":"qxz"}`}); r.status != 400 ||
		strings.Contains(r.text, "qxz") {
		t.Errorf("%d %s", r.status, r.text)
	}
	d, r := s.decide(t, q.SecretURL, `{"action":"provide","value":"`+canary+`"}`)
	if d.Status != "provided" || d.KeyName != "STRIPE_KEY" || strings.Contains(r.text, canary) {
		t.Errorf("%d %s", r.status, r.text)
	}
	rest := st.rest()
	if names(rest) != "tool_result text usage done" || !strings.Contains(rest[0].data, `"ok":true`) {
		t.Errorf("%v", rest)
	}
	if d, r := s.decide(t, q.SecretURL, `{"action":"provide","value":"`+canary+`"}`); d.Status != "provided" || !d.Already {
		t.Errorf("%d %s", r.status, r.text)
	}
	if _, r := s.decide(t, q.SecretURL, `{"action":"provide","value":"another-value"}`); r.status != 409 ||
		r.Error.Code != "APPROVAL_ALREADY_DECIDED" || strings.Contains(r.text, "another-value") {
		t.Errorf("another value: %d %s", r.status, r.text)
	}
	if _, r := s.decide(t, q.SecretURL, `{"action":"skip"}`); r.status != 409 {
		t.Errorf("%d %s", r.status, r.text)
	}
	var versions int
	if err := s.pool.QueryRow(t.Context(), `SELECT version FROM credentials WHERE name = 'STRIPE_KEY'`).Scan(&versions); err != nil ||
		versions != 2 {
		t.Errorf("version %d, %v", versions, err)
	}
	if r := s.get(t, call{method: "POST", path: strings.Replace(strings.Replace(q.SecretURL, "/v1", "", 1), "/secret", "/decide", 1),
		body: allow}); r.status != 404 {
		t.Errorf("a secret request as an approval: %d %s", r.status, r.text)
	}
}

func TestSecretRequestsThatAreNotAnswered(t *testing.T) {
	t.Parallel()
	s := startTurns(t, nil, func(c *turn.Config) { c.Window = 3 * time.Second })
	s.register(t, "STRIPE_KEY")
	script := `@call request_secret {"key_name":"STRIPE_KEY","reason":"r"}` + "\n@say Then not."
	st := s.say(t, script)
	if d, r := s.decide(t, st.asked().SecretURL, `{"action":"skip"}`); d.Status != "skipped" {
		t.Errorf("%d %s", r.status, r.text)
	}
	if rest := st.rest(); !strings.Contains(rest[0].data, "STRIPE_KEY will not be provided") {
		t.Errorf("%v", rest)
	}
	late := s.say(t, script)
	late.asked()
	if rest := late.rest(); !strings.Contains(rest[0].data, "STRIPE_KEY was not provided ") {
		t.Errorf("%v", rest)
	}
	unknown := s.say(t, `@call request_secret {"key_name":"AWS_KEY","reason":"r"}`+"\n@say No.").rest()
	if names(unknown) != "open tool_use tool_result text usage done" ||
		!strings.Contains(fmt.Sprint(unknown), "Registered credentials: STRIPE_KEY") {
		t.Errorf("%v", unknown)
	}
}
