package rest_test

import (
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/parley-server/parley/internal/egress"
	"github.com/parley-server/parley/internal/store/callback"
	"github.com/parley-server/parley/internal/store/permission"
	"github.com/parley-server/parley/internal/store/vault"
	"github.com/parley-server/parley/internal/testing/apicheck"
	"github.com/parley-server/parley/internal/testing/wait"
	"github.com/parley-server/parley/internal/turn"
)

// hook is a receiver of callbacks at example.com.
type hook struct {
	got   chan reported
	reply chan int
	doc   *apicheck.Document // every report is validated against it
	keys  *vault.Keyring
	guard *egress.Guard
}

// hookURL is the receiver's address.
const hookURL = "https://example.com/hook?token=hush"

// reported is one delivery of a callback.
type reported struct {
	header http.Header
	raw    []byte

	Type string
	Data struct {
		Success   bool
		Output    *string
		SessionID string `json:"session_id"`
		TurnID    string `json:"turn_id"`
		Workspace string `json:"workspace_id"`
		Seq       int64
		Error     *string
		Metadata  map[string]string
		Input     *question `json:"input_required"`
		Tools     *required `json:"tool_required"`
	}
}

// startHook starts a service with a receiver, whose turns need an approval for every tool.
func startHook(t *testing.T) (*service, *hook) {
	t.Helper()
	return startHookWith(t, nil)
}

// startHookWith is startHook with a changed configuration of turns.
func startHookWith(t *testing.T, change func(*turn.Config)) (*service, *hook) {
	t.Helper()
	h := &hook{got: make(chan reported, 100), reply: make(chan int, 100)}
	srv := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		var rep reported
		if err := json.Unmarshal(body, &rep); err != nil {
			t.Errorf("%s: %v", body, err)
		}
		rep.header, rep.raw = r.Header, body
		if err := h.doc.CheckWebhook(rep.Type, r.Header, body); err != nil {
			t.Errorf("%s does not match the document: %v", body, err)
		}
		h.got <- rep
		select {
		case status := <-h.reply:
			w.WriteHeader(status)
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(srv.Close)
	roots := x509.NewCertPool()
	roots.AddCert(srv.Certificate())
	var err error
	if h.guard, err = egress.New(egress.Config{Roots: roots, Allow: []string{"example.com:443=" + srv.Listener.Addr().String()}}); err != nil {
		t.Fatal(err)
	}
	s := startTurns(t, nil, func(c *turn.Config) {
		c.Permissions, c.Window = permission.New(c.Pool), time.Minute
		h.keys = c.Vault.Keyring() // the service's own keyring, which opens its addresses
		c.Callbacks = callback.NewStore(c.Pool, h.keys, h.guard)
		if change != nil {
			change(c)
		}
	})
	h.doc = document(t, s)
	return s, h
}

// callback sends a message with a callback, and returns the callback's id.
func (s *service) callback(t testing.TB, url, command string, fields ...string) string {
	t.Helper()
	r := s.get(t, call{method: "POST", path: "messages",
		body: body(t, command, append(fields, `"callback":{"url":"`+url+`","metadata":{"order":"17"}}`)...)})
	var got struct {
		CallbackID string `json:"callback_id"`
	}
	decode(t, r.Data, &got)
	if r.status != http.StatusAccepted || got.CallbackID == "" {
		t.Fatalf("%d %s", r.status, r.text)
	}
	return got.CallbackID
}

// shown is a callback as the API returns it.
type shown struct {
	URL        string
	Status     string
	Disabled   bool
	Deliveries []struct {
		WebhookID string `json:"webhook_id"`
		Type      string
		Status    string
		Payload   json.RawMessage
		Attempts  []struct {
			N      int
			Status *int
			Error  *string
		}
	}
}

// await reads a callback until it has a status and a number of attempts.
func (s *service) await(t testing.TB, id, status string, attempts int) shown {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); ; {
		r := s.get(t, call{path: "callbacks/" + id})
		var c shown
		decode(t, r.Data, &c)
		if c.Status == status && len(c.Deliveries) > 0 && len(c.Deliveries[0].Attempts) == attempts {
			return c
		}
		if time.Now().After(deadline) {
			t.Fatalf("not %s after %d attempts: %s", status, attempts, r.text)
		}
	}
}

func TestCallbackIsToldWhatABlockingCallWouldBe(t *testing.T) {
	t.Parallel()
	s, h := startHook(t)
	h.reply <- 204
	id := s.callback(t, hookURL, "@text 3 deltas")
	got := wait.Receive(t, "a request at the hook", h.got)
	c := s.await(t, id, "delivered", 1)
	d := got.Data
	if !strings.Contains(string(got.raw), `"agent":"default","agent_version":1`) {
		t.Errorf("the report has no agent: %s", got.raw)
	}
	if got.Type != "turn.completed" || !d.Success || d.Output == nil || d.Error != nil || d.Workspace != s.Workspace.ID.String() ||
		d.Metadata["order"] != "17" || d.Seq == 0 {
		t.Errorf("%s", got.raw)
	}
	if c.URL != "https://example.com/hook?…" || c.Deliveries[0].WebhookID != got.header.Get("webhook-id") ||
		strings.Contains(fmt.Sprint(c), "hush") {
		t.Errorf("%+v", c)
	}
	var sent, told any
	decode(t, got.raw, &sent)
	decode(t, c.Deliveries[0].Payload, &told)
	if fmt.Sprint(sent) != fmt.Sprint(told) {
		t.Errorf("shown %v, sent %v", told, sent)
	}
	secret, err := callback.NewStore(s.pool, h.keys, h.guard).Secret(t.Context(), s.Workspace.ID)
	if err != nil {
		t.Fatal(err)
	}
	hook, err := standardwebhooks.NewWebhook(secret)
	if err != nil {
		t.Fatal(err)
	}
	if err := hook.Verify(got.raw, got.header); err != nil {
		t.Error(err)
	}
	blocking, _ := s.ask(t, body(t, "@text 3 deltas", `"stream":false`))
	if *blocking.Output != *d.Output {
		t.Errorf("a blocking call returns %q, the callback %q", *blocking.Output, *d.Output)
	}
}

// TestCallbackHearsOfEveryEnd also checks that a question is reported.
func TestCallbackHearsOfEveryEnd(t *testing.T) {
	t.Parallel()
	s, h := startHook(t)
	for range 4 {
		h.reply <- 200
	}
	s.callback(t, hookURL, "@error content_refused")
	if r := wait.Receive(t, "a request at the hook", h.got); r.Type != "turn.failed" || r.Data.Success || r.Data.Output != nil ||
		*r.Data.Error != "content_refused" {
		t.Errorf("%s", r.raw)
	}
	id := s.callback(t, hookURL, "@say I open it.\n@call gate {}")
	asked := wait.Receive(t, "a request at the hook", h.got)
	if asked.Type != "turn.input_required" || *asked.Data.Error != "input_required" || asked.Data.Input == nil ||
		asked.Data.Input.ApprovalID == "" {
		t.Fatalf("%s", asked.raw)
	}
	if r := s.get(t, call{method: "POST", path: "sessions/" + asked.Data.SessionID + "/cancel"}); r.status != 200 {
		t.Fatal(r.text)
	}
	canceled := wait.Receive(t, "a request at the hook", h.got)
	if canceled.Type != "turn.canceled" || *canceled.Data.Error != "canceled" || canceled.Data.Seq <= asked.Data.Seq ||
		canceled.header.Get("webhook-id") == asked.header.Get("webhook-id") {
		t.Errorf("%s", canceled.raw)
	}
	if c := s.await(t, id, "delivered", 1); len(c.Deliveries) != 2 || c.Deliveries[0].Type != "turn.canceled" ||
		c.Deliveries[1].Type != "turn.input_required" {
		t.Errorf("%+v", c)
	}
}

func TestRedeliver(t *testing.T) {
	t.Parallel()
	s, h := startHook(t)
	id := s.callback(t, hookURL, held)
	redeliver := call{method: "POST", path: "callbacks/" + id + "/redeliver"}
	asked := wait.Receive(t, "a request at the hook", h.got) // the gate needs an approval
	h.reply <- 410
	c := s.await(t, id, "failed", 1)
	if !c.Disabled || *c.Deliveries[0].Attempts[0].Error != "gone" {
		t.Errorf("%+v", c)
	}
	h.reply <- 200
	var did struct {
		Redelivering bool
		WebhookID    string `json:"webhook_id"`
		Reason       string
	}
	r := s.get(t, redeliver)
	decode(t, r.Data, &did)
	again := wait.Receive(t, "a request at the hook", h.got)
	if r.status != 200 || !did.Redelivering || did.WebhookID != asked.header.Get("webhook-id") ||
		did.WebhookID != again.header.Get("webhook-id") || string(again.raw) != string(asked.raw) {
		t.Errorf("%s: %s, then %s", r.text, asked.raw, again.raw)
	}
	if c := s.await(t, id, "delivered", 2); c.Disabled {
		t.Errorf("%+v", c)
	}
	_, foreign := s.Another(t)
	for _, op := range []call{{path: "callbacks/" + id}, redeliver} {
		for _, other := range []string{uuid.NewString(), "nonsense", strings.ToUpper(uuid.NewString())} {
			bad := op
			bad.path = strings.Replace(op.path, id, other, 1)
			if r := s.get(t, bad); r.status != 404 || r.Error.Code != "CALLBACK_NOT_FOUND" {
				t.Errorf("%s: %d %s", bad.path, r.status, r.text)
			}
		}
		op.key, op.path = foreign, "/api/v1/workspaces/another/"+op.path
		if r := s.get(t, op); r.status != 404 || r.Error.Code != "CALLBACK_NOT_FOUND" {
			t.Errorf("another workspace's: %d %s", r.status, r.text)
		}
	}
	if n := len(h.got); n != 0 {
		t.Errorf("%d more reports", n)
	}
}

func TestNothingToRedeliver(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	id := s.callback(t, "https://listen.invalid/", held)
	s.Gate.Await(t)
	if r := s.get(t, call{method: "POST", path: "callbacks/" + id + "/redeliver"}); r.status != 200 ||
		!strings.Contains(r.text, `"redelivering":false,"reason":"nothing_reported"`) {
		t.Errorf("%d %s", r.status, r.text)
	}
	if r := s.get(t, call{path: "callbacks/" + id}); !strings.Contains(r.text, `"status":"waiting","disabled":false,"deliveries":[]`) {
		t.Errorf("%s", r.text)
	}
	s.Gate.Leave <- struct{}{}
	if c := s.await(t, id, "failed", 1); *c.Deliveries[0].Attempts[0].Error != "not_sent" {
		t.Errorf("%+v", c)
	}
}

func TestListCallbacks(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	var last string
	for range 3 {
		last = s.callback(t, "https://listen.invalid/?token=hush", "@text 1 delta")
		s.await(t, last, "failed", 1)
	}
	all, pages := s.pages(t, "callbacks?limit=2")
	if len(all) != 3 || pages != 2 {
		t.Errorf("%d in %d pages", len(all), pages)
	}
	if r := s.get(t, call{path: "callbacks?limit=1"}); !strings.Contains(r.text, last) || strings.Contains(r.text, "hush") ||
		!strings.Contains(r.text, `"error":"not_sent"`) {
		t.Errorf("%s", r.text)
	}
	for query, want := range map[string]int{"status=failed": 3, "status=delivered": 0, "status=pending": 0} {
		if got, _ := s.pages(t, "callbacks?"+query); len(got) != want {
			t.Errorf("%s: %d, want %d", query, len(got), want)
		}
	}
	s.badList(t, "callbacks?status=gone&limit=0&x=1", "/x unknown, /limit minimum, /status enum")
	for _, cursor := range []string{"x", "%00", strings.Repeat("A", 23), "AAAA"} {
		if r := s.get(t, call{path: "callbacks?cursor=" + cursor}); r.status != 400 || r.Error.Code != "INVALID_CURSOR" {
			t.Errorf("cursor %s: %d %s", cursor, r.status, r.text)
		}
	}
	for query, code := range map[string]string{"https://127.0.0.1/": "INVALID_CALLBACK_URL", "http://example.com/": "INVALID_CALLBACK_URL"} {
		if r := s.get(t, call{method: "POST", path: "messages", body: body(t, "hi", `"callback":"`+query+`"`)}); r.status != 400 ||
			r.Error.Code != code || r.Error.Param != "callback/url" {
			t.Errorf("%s: %d %s", query, r.status, r.text)
		}
	}
}

// TestCallbackReportsCallersTools: a callback reports the calls of the caller's tools, and the end of
// the turn after their results.
func TestCallbackReportsCallersTools(t *testing.T) {
	t.Parallel()
	s, h := startHook(t)
	h.reply <- 200
	h.reply <- 200
	id := s.callback(t, hookURL, "@call get_weather {\"city\":\"Paris\"}\n@say It is warm.", weather)
	asked := wait.Receive(t, "a request at the hook", h.got)
	if q := asked.Data.Tools; asked.Type != "turn.input_required" || asked.Data.Success || asked.Data.Output != nil ||
		*asked.Data.Error != "tool_required" || asked.Data.Input != nil ||
		q == nil || len(q.Calls) != 1 || q.Calls[0].Tool != "get_weather" || string(q.Calls[0].Input) != `{"city":"Paris"}` ||
		!strings.HasSuffix(q.ReplyURL, "/sessions/"+asked.Data.SessionID+"/tool-results") {
		t.Fatalf("%s", asked.raw)
	}
	if r := s.get(t, call{method: "POST", path: asked.Data.Tools.ReplyURL, body: results(asked.Data.Tools.Calls[0].ToolUseID,
		`{"celsius":21}`)}); r.status != 200 {
		t.Fatal(r.text)
	}
	end := wait.Receive(t, "a request at the hook", h.got)
	if end.Type != "turn.completed" || end.Data.TurnID != asked.Data.TurnID || end.Data.Tools != nil || end.Data.Output == nil ||
		*end.Data.Output != "It is warm." || end.Data.Metadata["order"] != "17" {
		t.Errorf("%s", end.raw)
	}
	if c := s.await(t, id, "delivered", 1); len(c.Deliveries) != 2 || c.Deliveries[1].Type != "turn.input_required" {
		t.Errorf("%+v", c)
	}
}
