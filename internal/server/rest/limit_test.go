package rest_test

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/server"
	"github.com/parley-server/parley/internal/store/apikey"
	"github.com/parley-server/parley/internal/store/ratelimit"
	"github.com/parley-server/parley/internal/store/workspace"
	"github.com/parley-server/parley/internal/testing/apitest"
	"github.com/parley-server/parley/internal/testing/wait"
)

// limit gives the demo workspace's keys limits of their own.
func (s *service) limit(t testing.TB, c workspace.Change) {
	t.Helper()
	if _, err := s.Workspaces.Update(t.Context(), s.Workspace.ID, c); err != nil {
		t.Fatal(err)
	}
}

var (
	policy = regexp.MustCompile(`^"(messages|calls)";q=(\d+);w=60$`)
	left   = regexp.MustCompile(`^"(messages|calls)";r=(\d+);t=(\d+)$`)
)

// quota parses the rate-limit headers of a response.
func quota(t testing.TB, h http.Header) (class string, size, rest, wait int) {
	t.Helper()
	p, l := policy.FindStringSubmatch(h.Get("RateLimit-Policy")), left.FindStringSubmatch(h.Get("RateLimit"))
	if p == nil || l == nil || p[1] != l[1] {
		t.Fatalf("RateLimit-Policy %q, RateLimit %q", h.Get("RateLimit-Policy"), h.Get("RateLimit"))
	}
	size, _ = strconv.Atoi(p[2])
	rest, _ = strconv.Atoi(l[2])
	wait, _ = strconv.Atoi(l[3])
	return p[1], size, rest, wait
}

// TestEveryOperationIsLimited checks that every operation that needs a key reports the key's quota
// in successes and failures, and rejects a key without quota before any other check, as documented.
func TestEveryOperationIsLimited(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	for _, op := range s.operations(t) {
		doc := document(t, s).Paths.Value(op.template).GetOperation(op.method)
		class, want := "calls", apitest.Plenty.Calls
		if doc.Extensions["x-limit"] != nil {
			class, want = doc.Extensions["x-limit"].(string), apitest.Plenty.Messages
		}
		for status, ref := range doc.Responses.Map() {
			_, limited := ref.Value.Headers["RateLimit"]
			_, named := ref.Value.Headers["RateLimit-Policy"]
			narrow := slices.Contains([]string{"401", "403", "405"}, status) || status == "404" && op.namesWorkspace() && len(codesOf(t,
				ref.Value)) == 1
			if !narrow && (!limited || !named) {
				t.Errorf("%s: %s does not name RateLimit and RateLimit-Policy", op, status)
			}
		}
		if many := doc.Responses.Value("429"); many == nil ||
			codesOf(t, many.Value) != nil && !strings.Contains(fmt.Sprint(codesOf(t, many.Value)), "RATE_LIMITED") {
			t.Errorf("%s: no 429 RATE_LIMITED", op)
			continue
		}
		s.limit(t, workspace.Change{MessagesPerMinute: new(-1), CallsPerMinute: new(-1)})
		c := op.call("demo", nothing())
		c.header = append(c.header, "Accept", "image/png")
		r := s.get(t, c)
		if got, size, rest, _ := quota(t, r.header); op.servedBy == "" && (r.status != 406 || got != class || size != want) || rest >= size {
			t.Errorf("%s: %d, %s %d", op, r.status, got, size)
		}
		s.limit(t, workspace.Change{MessagesPerMinute: new(1), CallsPerMinute: new(1)})
		c.key = s.Issue(t, s.Workspace, apikey.All...)
		if _, size, rest, wait := quota(t, s.get(t, c).header); size != 1 || rest != 0 || wait < 1 || wait > 60 {
			t.Errorf("%s: a quota of 1: %d, %d, %d", op, size, rest, wait)
		}
		for range 2 { // rejected by the database first, then from memory
			r = s.get(t, c)
			_, size, rest, wait := quota(t, r.header)
			if r.status != 429 || r.Error.Code != "RATE_LIMITED" || r.Error.Type != "rate_limit_error" || size != 1 || rest != 0 ||
				wait < 1 || wait > 60 ||
				r.header.Get("Retry-After") != strconv.Itoa(wait) || r.Error.RetryAfter != wait {
				t.Errorf("%s: %d %s %v", op, r.status, r.text, r.header)
			}
		}
		if !op.namesWorkspace() {
			continue
		}
		c.path = strings.Replace(c.path, "demo", "nowhere", 1)
		if r := s.get(t, c); r.status != 404 || r.header.Get("RateLimit") != "" {
			t.Errorf("%s: another workspace's object: %d", op, r.status)
		}
	}
}

func TestALimitIsOfOneKeyAndOneClass(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	s.limit(t, workspace.Change{MessagesPerMinute: new(2), CallsPerMinute: new(3)})
	message := call{method: "POST", path: "messages", body: `{"command":"@text 1 delta","stream":false}`}
	for range 2 {
		if r := s.get(t, message); r.status != 200 {
			t.Fatalf("%d: %s", r.status, r.text)
		}
	}
	if r := s.get(t, message); r.status != 429 {
		t.Errorf("a third message: %d", r.status)
	}
	for range 3 {
		if r := s.get(t, call{path: "sessions"}); r.status != 200 {
			t.Errorf("a call: %d", r.status)
		}
	}
	if r := s.get(t, call{path: "sessions"}); r.status != 429 {
		t.Errorf("a fourth call: %d", r.status)
	}
	other := s.Issue(t, s.Workspace, apikey.All...)
	message.key = other
	if r := s.get(t, message); r.status != 200 {
		t.Errorf("another key: %d", r.status)
	}
	if r := s.get(t, call{path: "/api/v1/openapi", key: s.Key}); r.status != 200 || r.header.Get("RateLimit") != "" {
		t.Errorf("the document: %d", r.status)
	}
	s.limit(t, workspace.Change{MessagesPerMinute: new(0), CallsPerMinute: new(0)})
	for range 5 {
		if r := s.get(t, call{path: "sessions", key: other}); r.status != 200 || r.header.Get("RateLimit") != "" {
			t.Errorf("without a limit: %d", r.status)
		}
	}
}

func TestReplicasShareALimit(t *testing.T) {
	t.Parallel()
	here := start(t, nil)
	there := here.replica(t, nil)
	here.limit(t, workspace.Change{CallsPerMinute: new(4)})
	for i, s := range []*service{here, there, here, there} {
		if _, _, rest, _ := quota(t, s.get(t, call{path: "sessions"}).header); rest != 3-i {
			t.Errorf("after request %d there are %d left", i+1, rest)
		}
	}
	for _, s := range []*service{here, there} {
		if r := s.get(t, call{path: "sessions"}); r.status != 429 {
			t.Errorf("%d", r.status)
		}
	}
}

// TestAFloodIsRefusedWithoutTheDatabase checks that a flood of requests reads only the key from the
// database, which every key causes from time to time.
func TestAFloodIsRefusedWithoutTheDatabase(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	s.limit(t, workspace.Change{CallsPerMinute: new(1)})
	for range 2 {
		s.get(t, call{path: "sessions"})
	}
	counts, workspaces := s.link.count("RateTake"), s.link.count("WorkspaceByID")
	for range 50 {
		if r := s.get(t, call{path: "sessions"}); r.status != 429 {
			t.Fatalf("%d: %s", r.status, r.text)
		}
	}
	if n := s.link.count("RateTake") - counts; n != 0 || counts != 2 {
		t.Errorf("%d counts for two requests, %d for the flood", counts, n)
	}
	if n := s.link.count("WorkspaceByID") - workspaces; n != 0 {
		t.Errorf("%d reads of the workspace", n)
	}
}

func TestWhatCannotBeCountedPasses(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	if _, err := s.pool.Exec(t.Context(), `ALTER TABLE rate_limits RENAME TO elsewhere`); err != nil {
		t.Fatal(err)
	}
	if r := s.get(t, call{path: "sessions"}); r.status != 200 || r.header.Get("RateLimit") != "" {
		t.Errorf("%d: %s", r.status, r.text)
	}
}

// TestOpenStreamsAreLimited checks that a stream over the key's limit is rejected before its
// message is stored. Blocking calls count as streams, and so do those on other replicas.
func TestOpenStreamsAreLimited(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	s.limit(t, workspace.Change{OpenStreams: new(3)})
	first := s.say(t, held)
	session := sessionOf(t, first.until("open")[0])
	second := s.open(t, call{path: "sessions/" + session + "/events"})
	blocked := make(chan reply, 1)
	go func() {
		blocked <- s.get(t, call{method: "POST", path: "messages", body: body(t, held, `"stream":false`)})
	}()
	s.Gate.Await(t)
	s.Gate.Await(t) // the blocking call waits as well

	refused := func(c call) {
		t.Helper()
		if r := s.get(t, c); r.status != 429 || r.Error.Code != "CONCURRENCY_LIMIT" || r.Error.Type != "rate_limit_error" ||
			r.header.Get("Retry-After") != "1" {
			t.Errorf("%s %s: %d %s", c.method, c.path, r.status, r.text)
		}
	}
	message := call{method: "POST", path: "messages", body: `{"command":"@text 1 delta"}`}
	resume := call{path: "sessions/" + session + "/events"}
	refused(message)
	refused(call{method: "POST", path: "messages", body: `{"command":"@text 1 delta","stream":false}`})
	refused(resume)
	refused(call{path: "sessions/" + uuid.NewString() + "/events"})
	if r := s.get(t, call{method: "POST", path: "messages", body: `{}`}); r.status != 400 {
		t.Errorf("a bad message: %d", r.status)
	}
	if r := s.get(t, call{path: "sessions"}); r.status != 200 || strings.Count(string(r.Data), "session_id") != 2 {
		t.Errorf("a refused message was stored: %s", r.Data)
	}
	other := message
	other.key = s.Issue(t, s.Workspace, apikey.All...)
	s.open(t, other).rest()

	second.close()
	for { // until the server notices that its reader has disconnected
		res := s.do(t, resume)
		res.Body.Close()
		if res.StatusCode == http.StatusOK {
			break
		}
	}
	s.Gate.Leave <- struct{}{}
	s.Gate.Leave <- struct{}{}
	if r := wait.Receive(t, "the blocking call", blocked); r.status != 200 {
		t.Errorf("the blocking call: %d %s", r.status, r.text)
	}
	if got := names(first.rest()); got != "text tool_use tool_result text usage done" {
		t.Errorf("the first stream: %s", got)
	}
}

func TestReplicasShareTheLimitOfStreams(t *testing.T) {
	t.Parallel()
	here := start(t, nil)
	there := here.replica(t, nil)
	here.limit(t, workspace.Change{OpenStreams: new(2)})
	st := here.say(t, held)
	session := sessionOf(t, st.until("open")[0])
	here.Gate.Await(t)
	here.open(t, call{path: "sessions/" + session + "/events"})
	for { // the other replica learns of it within a second
		res := there.do(t, call{path: "sessions/" + session + "/events"})
		res.Body.Close()
		if res.StatusCode == http.StatusTooManyRequests {
			break
		}
	}
	here.Gate.Leave <- struct{}{}
	st.rest()
	for {
		res := there.do(t, call{path: "sessions/" + session + "/events"})
		res.Body.Close()
		if res.StatusCode == http.StatusOK {
			break
		}
	}
}

// TestDocumentedLimitsAreTheConfiguredOnes checks that the document shows the configuration of this
// server.
func TestDocumentedLimitsAreTheConfiguredOnes(t *testing.T) {
	t.Parallel()
	s := startTurns(t, func(c *server.Config) {
		c.Keepalive, c.WriteTimeout, c.Failures = 7*time.Second, 2500*time.Millisecond, ratelimit.NewFailures(5)
	}, asking(9*time.Minute))
	for name, want := range map[string]int{
		"messages_per_minute": apitest.Plenty.Messages, "calls_per_minute": apitest.Plenty.Calls, "open_streams": apitest.Plenty.Streams,
		"failed_keys_per_minute": 5, "keepalive_seconds": 7, "write_timeout_seconds": 3, "replay_seconds": 86400, "body_bytes": 1 << 20,
		"approval_window_seconds": 540, "signed_url_seconds": 7 * 86400,
	} {
		limits := document(t, s).Extensions["x-limits"].(map[string]any)
		if got := limits[name]; got != float64(want) {
			t.Errorf("%s is documented as %v", name, got)
		}
	}
}
