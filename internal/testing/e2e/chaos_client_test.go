package e2e_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/parley-server/parley/internal/model/builtin"
)

// chaosMessage is a message and the whole text of each of its steps.
type chaosMessage struct {
	tag     string // part of the message, and its Idempotency-Key
	command string
	steps   []string
	body    map[string]any // members of the request besides the command

	blocking    bool
	cancelAfter int           // frames; 0: never
	decision    string        // decision on its approvals
	page        string        // wiki page that an approved call writes; "": it calls the shop
	bad         []string      // how the first replies of the provider fail
	then        *chaosMessage // sent to the same session while this one's turn runs
}

// unanswered is the decision on approvals that expire.
const unanswered = "unanswered"

// The kinds of messages; newChaosMessage draws from those before messageSecret.
const (
	messageText     = 0
	messageTools    = 3
	messageApproval = 5
	messageOverload = 7
	messageShop     = 8
	messageProvider = 9
	messageSecret   = 11
)

// newChaosMessage draws a message.
func newChaosMessage(rng *rand.Rand, tag string) *chaosMessage {
	return newChaosMessageOf(rng, tag, rng.IntN(messageSecret))
}

// newChaosMessageOf draws a message of a kind.
func newChaosMessageOf(rng *rand.Rand, tag string, kind int) *chaosMessage {
	m := &chaosMessage{tag: tag, body: map[string]any{}}
	script := builtin.Script("").Line("Message %s", tag)
	text := func() {
		n, size, rate := 20+rng.IntN(100), 6+rng.IntN(30), 40+rng.IntN(160)
		script = script.Text(n, size, float64(rate))
		m.steps = append(m.steps, builtin.Deltas(n, size))
	}
	words := func() {
		n := 1 + rng.IntN(30)
		script = script.Say(n)
		m.steps = append(m.steps, builtin.Words(n))
	}
	switch kind {
	case messageText, messageText + 1, messageText + 2:
		text()
	case messageTools, messageTools + 1:
		words()
		script = script.Line(`@call grep {"pattern":"x"} write {"path":"%s.txt","content":"%s"} grep {"pattern":"y"}`, tag, tag)
		text()
		script = script.Call("read", fmt.Sprintf(`{"path":"%s.txt"}`, tag))
		words()
	case messageApproval, messageApproval + 1:
		m.decision = []string{"allow", "allow", "deny"}[rng.IntN(3)]
		m.page = "chaos-" + tag
		words()
		script = script.Call("wiki_write", fmt.Sprintf(`{"page":"%s","content":"%s"}`, m.page, tag))
		text()
	case messageOverload:
		script = script.Line("@unicode").Line("@error model_overloaded once")
		m.steps = append(m.steps, builtin.Unicode)
	case messageShop:
		m.decision = "allow"
		words()
		script = script.Call("book", "{}")
		text()
	case messageProvider, messageProvider + 1:
		provideMessage(rng, m)
	case messageSecret:
		m.decision = "allow"
		words()
		script = script.Call("request_secret", `{"key_name":"SHOP_KEY","reason":"to pay"}`)
		words()
		script = script.Call("pay", "{}")
		text()
	}
	if m.decision == "" {
		m.blocking = rng.IntN(5) == 0
		if rng.IntN(6) == 0 {
			m.cancelAfter = 1 + rng.IntN(15)
		}
	}
	m.command = script.String()
	return m
}

// connection is one stream that a client read: its frames must be the rows after its cursor.
type connection struct {
	tag     string
	session string
	cursor  string // "": the stream began with the turn's own open frame
	all     bool   // replay=all: rows of every turn, without open and done
	frames  []frame
	ended   bool // with done
}

// sentMessage is a client's record of a message.
type sentMessage struct {
	*chaosMessage
	session  string
	finished bool        // the client has received its end
	canceled bool        // the response to a cancel call was canceled: true
	output   string      // output of a blocking call
	rows     []time.Time // when a stream delivered its rows
}

// chaosClient sends messages one after the other and reads their streams, through all faults.
type chaosClient struct {
	run *chaosRun
	rng *rand.Rand
	bg  sync.WaitGroup // decisions and cancel calls
}

// work sends n messages, and more if the plan goes on, or fewer if the run ends.
func (c *chaosClient) work(ctx context.Context, name string, n int) {
	defer c.bg.Wait()
	session := ""
	began := time.Now()
	for i := 0; i < n || time.Since(began) < c.run.plan.goesOn; i++ {
		m := c.draw(fmt.Sprintf("%s-%d", name, i))
		if session != "" && c.rng.IntN(2) == 0 {
			m.body["session_id"] = session
		} else if c.rng.IntN(3) == 0 {
			m.body["caller_id"] = "caller-" + m.tag
		}
		if !m.blocking && m.cancelAfter == 0 && c.rng.IntN(4) == 0 {
			m.then = c.draw(m.tag + "-then")
			m.then.blocking, m.then.cancelAfter = false, 0
			m.then.body["multitask_strategy"] = []string{"enqueue", "interrupt"}[c.rng.IntN(2)]
		}
		sent := c.run.note(m)
		if m.blocking {
			c.call(ctx, sent)
		} else {
			c.read(ctx, sent)
		}
		if ctx.Err() != nil {
			return
		}
		if session = sent.session; m.cancelAfter > 0 { // a late cancel call would end the next turn
			session = ""
		}
		c.pause(ctx, 2*cmp.Or(c.run.plan.think, 100*time.Millisecond))
	}
}

func (c *chaosClient) draw(tag string) *chaosMessage {
	if draw := c.run.plan.draw; draw != nil {
		return draw(c.run, c.rng, tag)
	}
	m := newChaosMessage(c.rng, tag)
	if c.run.plan.short {
		m.bad = m.bad[:min(len(m.bad), 1)]
	}
	return m
}

// read sends a message and reads its stream to the end.
func (c *chaosClient) read(ctx context.Context, s *sentMessage) {
	cursor, seen, decided, canceling := "", 0, map[string]bool{}, false
	// Otherwise the same message is sent again with the cursor. A message that may be queued always
	// is: replay=all would end with the turn before it.
	all := c.rng.IntN(4) > 0 && s.body["multitask_strategy"] == nil
	for !s.finished && ctx.Err() == nil {
		conn := &connection{tag: s.tag, session: s.session, cursor: cursor}
		srv := c.server()
		req := c.post(srv, s)
		if s.session != "" && cursor != "" {
			if conn.all = all; all {
				req = c.run.w.events(srv, s.session, cursor)
			} else {
				req.Header.Set("Last-Event-ID", cursor)
			}
		} else {
			conn.cursor, cursor = "", ""
		}
		limit := -1
		if c.rng.IntN(3) == 0 {
			limit = 1 + c.rng.IntN(40)
		}
		err := c.run.w.stream(ctx, req, func(f frame) bool {
			if f.Event == "open" && s.session == "" {
				s.session = sessionOf(f)
				c.sendNext(ctx, s)
			}
			conn.session, conn.frames, conn.ended = s.session, append(conn.frames, f), f.Event == "done"
			if cursor = f.ID; f.Event != "open" {
				s.rows = append(s.rows, time.Now())
			}
			if seen++; s.cancelAfter > 0 && seen >= s.cancelAfter && !canceling {
				canceling = true
				replica := c.run.replicas[seen%2]
				c.bg.Go(func() { c.run.cancel(ctx, replica, s) })
			}
			if q := questionIn(f); q != nil && s.asks(q) && !decided[q.ApprovalID] {
				decided[q.ApprovalID] = true
				c.bg.Go(func() { c.run.answer(ctx, q, s.decision) })
			}
			limit--
			return limit != 0
		})
		s.finished = conn.ended
		c.run.saw(conn, err)
		if !s.finished {
			c.pause(ctx, 150*time.Millisecond)
		}
	}
}

// sendNext sends the message that arrives while another one's turn runs.
func (c *chaosClient) sendNext(ctx context.Context, s *sentMessage) {
	if s.then == nil {
		return
	}
	s.then.body["session_id"] = s.session
	next := c.run.note(s.then)
	other := &chaosClient{run: c.run, rng: rand.New(rand.NewPCG(c.rng.Uint64(), 0))}
	c.bg.Go(func() {
		other.read(ctx, next)
		other.bg.Wait()
	})
}

// call sends a blocking message until it gets a response.
func (c *chaosClient) call(ctx context.Context, s *sentMessage) {
	s.body["stream"] = false
	for ctx.Err() == nil {
		patient, cancel := context.WithTimeout(ctx, 20*time.Second)
		res, body, err := c.run.w.try(c.post(c.server(), s).WithContext(patient))
		cancel()
		if err == nil && res.StatusCode == http.StatusOK {
			var got struct {
				SessionID string `json:"session_id"`
				Output    string
			}
			if err := json.Unmarshal(body, &got); err != nil {
				c.run.violation("a blocking call of %s was answered with %.200s", s.tag, body)
			}
			s.session, s.output, s.finished = got.SessionID, got.Output, true
			return
		}
		c.run.refused(s.tag, res, body)
		c.pause(ctx, 300*time.Millisecond)
	}
}

func (c *chaosClient) post(srv *server, s *sentMessage) *http.Request {
	s.body["command"] = s.command
	req := c.run.w.messages(srv, s.body)
	req.Header.Set("Idempotency-Key", s.tag)
	return req
}

func (c *chaosClient) server() *server { return &c.run.replicas[c.rng.IntN(2)].server }

func (c *chaosClient) pause(ctx context.Context, most time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(time.Duration(c.rng.Int64N(int64(most)))):
	}
}

func sessionOf(f frame) string {
	var open struct {
		SessionID string `json:"session_id"`
	}
	_ = json.Unmarshal([]byte(f.Data), &open)
	return open.SessionID
}

func questionIn(f frame) *question {
	q := &question{}
	if f.Event != "input_required" || json.Unmarshal([]byte(f.Data), q) != nil || len(q.Operations) == 0 && q.SecretURL == "" {
		return nil
	}
	return q
}

// asks reports whether a question is one of the message that its client answers: a resumed stream may
// have those of other turns.
func (m *chaosMessage) asks(q *question) bool {
	switch {
	case m.decision == "" || m.decision == unanswered:
		return false
	case q.SecretURL != "":
		return true
	}
	return q.Operations[0].Input.Page == m.page
}

// answer answers a question, and repeats that until a server accepts it.
func (c *chaosRun) answer(ctx context.Context, q *question, decision string) {
	if q.SecretURL != "" {
		c.provide(ctx, q.SecretURL)
		return
	}
	c.insist(ctx, func(srv *server) *http.Request { return c.w.decision(c.t, srv, q.DecideURL, decision) }, c.isAnswered)
}

// isAnswered reports whether a response to an answer is final. A promotion may lose a question that
// the standby did not have, but only if commits became visible without it: docs/operations.md
// describes when.
func (c *chaosRun) isAnswered(status int, _ []byte) bool {
	switch status {
	case http.StatusOK, http.StatusConflict, http.StatusGone:
		return true
	case http.StatusNotFound:
		unconfirmed := slices.ContainsFunc(c.plan.kinds, func(kind string) bool { return kind == faultDisk || kind == faultTerminate })
		c.mu.Lock()
		defer c.mu.Unlock()
		return unconfirmed && len(c.promotions) > 0
	}
	return false
}

// cancel cancels a turn and records whether that ended it.
func (c *chaosRun) cancel(ctx context.Context, first *replica, s *sentMessage) {
	c.insist(ctx, func(srv *server) *http.Request {
		return srv.post("/api/v1/workspaces/w/sessions/"+s.session+"/cancel", map[string]any{})
	}, func(status int, body []byte) bool {
		if status == http.StatusOK && bytes.Contains(body, []byte(`"canceled":true`)) {
			c.mu.Lock()
			s.canceled = true
			c.mu.Unlock()
		}
		return status == http.StatusOK
	})
}

// insist repeats a request at both replicas until the response is good.
func (c *chaosRun) insist(ctx context.Context, request func(*server) *http.Request, good func(int, []byte) bool) {
	for i := 0; ctx.Err() == nil; i++ {
		patient, cancel := context.WithTimeout(ctx, 10*time.Second)
		res, body, err := c.w.try(request(&c.replicas[i%2].server).WithContext(patient))
		cancel()
		if err == nil && good(res.StatusCode, body) {
			return
		}
		c.refused("", res, body)
		select {
		case <-ctx.Done():
		case <-time.After(300 * time.Millisecond):
		}
	}
}

// refused records an unexpected response: only 409, 429 and 503 are acceptable, and broken
// connections.
func (c *chaosRun) refused(tag string, res *http.Response, body []byte) {
	if res == nil {
		return
	}
	switch res.StatusCode {
	case http.StatusConflict, http.StatusTooManyRequests, http.StatusServiceUnavailable:
	default:
		c.violation("%s: %s %.300s", tag, res.Status, strings.TrimSpace(string(body)))
	}
}

// provide answers a request for a secret, and repeats that until a server accepts it.
func (c *chaosRun) provide(ctx context.Context, url string) {
	c.insist(ctx, func(srv *server) *http.Request {
		req := srv.post(url, map[string]string{"action": "provide", "value": shopSecret})
		req.Header.Set("Authorization", "Bearer "+c.secretKey)
		return req
	}, c.isAnswered)
}
