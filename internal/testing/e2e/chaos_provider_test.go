package e2e_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/model"
	"github.com/parley-server/parley/internal/model/builtin"
	"github.com/parley-server/parley/internal/model/provider"
	"github.com/parley-server/parley/internal/testing/modeltest"
)

// providedAgent is the agent whose model is at the provider of the run.
const providedAgent = "provided"

// providerRequests is how many requests of one step must fail before a turn may fail.
const providerRequests = 4

// badReplies are the ways in which a provider answers badly. A slow reply is complete.
var badReplies = []string{"500", "429", "reported", "cut", "silent", "slow"}

// chaosProvider implements the Chat Completions API. It writes the steps of a message, and its first
// replies to the message are bad in the way that the message says. A request to continue a reply gets
// exactly the rest of it.
type chaosProvider struct {
	run *chaosRun

	mu       sync.Mutex
	messages map[string]*chaosMessage // by tag
	requests map[string]int           // by tag
	spoiled  int                      // bad replies
	excused  int                      // turns that they failed
}

// openProvider starts the provider and creates its agent. The other agents keep the built-in model.
func (c *chaosRun) openProvider() {
	c.t.Helper()
	p := &chaosProvider{run: c, messages: map[string]*chaosMessage{}, requests: map[string]int{}}
	s := modeltest.OpenAI(&modeltest.Script{Answer: p.answer})
	c.t.Cleanup(func() { closeProvider(s) })
	c.provider = p
	c.w.env = append(c.w.env, "OPENAI_BASE_URL="+s.URL+"/v1", "PARLEY_MODEL=builtin/guide", "PARLEY_MODEL_TIMEOUT=3s")
	c.w.parley(c.t, "agent", "create", providedAgent, "--model", "openai/chaos", "--workspace", "w")
}

// closeProvider ends a provider whose silent replies are still open.
func closeProvider(s *httptest.Server) {
	s.CloseClientConnections()
	s.Close()
}

// provideMessage makes a message one for the agent with the provider's model.
func provideMessage(rng *rand.Rand, m *chaosMessage) {
	m.body["agent"] = providedAgent
	for range 1 + rng.IntN(2) {
		m.steps = append(m.steps, builtin.Deltas(10+rng.IntN(60), 6+rng.IntN(30)))
	}
	n := rng.IntN(3)
	if rng.IntN(8) == 0 {
		n = providerRequests + rng.IntN(2)
	}
	for range n {
		m.bad = append(m.bad, badReplies[rng.IntN(len(badReplies))])
	}
}

func (p *chaosProvider) add(m *chaosMessage) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.messages[m.tag] = m
}

// answer returns the reply to a request.
func (p *chaosProvider) answer(req modeltest.Request) modeltest.Reply {
	tag, step, partial := readRequest(req.Body)
	p.mu.Lock()
	m, n := p.messages[tag], p.requests[tag]
	p.requests[tag]++
	if m != nil && n < len(m.bad) {
		p.spoiled++
	}
	p.mu.Unlock()
	if m == nil || step >= len(m.steps) || !strings.HasPrefix(m.steps[step], partial) {
		p.run.violation("the provider received a request for step %d of %q that begins with %.80q", step+1, tag, partial)
		return modeltest.Reply{Status: http.StatusBadRequest, Body: "{}"}
	}
	reply := modeltest.Reply{Usage: &model.Usage{InputTokens: 10, OutputTokens: 5}}
	for part := range slices.Chunk([]byte(m.steps[step][len(partial):]), 17) {
		reply.Text = append(reply.Text, string(part))
	}
	if step < len(m.steps)-1 {
		reply.Calls = []modeltest.Call{{ID: "c1", Tool: "grep", Input: `{"pattern":"x"}`}}
	}
	if n < len(m.bad) {
		spoilReply(&reply, m.bad[n], n)
	}
	return reply
}

// spoilReply makes a reply bad.
func spoilReply(r *modeltest.Reply, how string, n int) {
	switch how {
	case "500":
		r.Status, r.Body = http.StatusInternalServerError, `{"error":{"message":"chaos"}}`
	case "429":
		r.Status, r.Body, r.Header = http.StatusTooManyRequests, "{}", http.Header{"Retry-After-Ms": {"200"}}
	case "reported":
		r.Frames = []string{modeltest.Data(map[string]any{"error": map[string]any{"type": "server_error", "message": "chaos"}})}
	case "cut":
		r.Cut = 1 + n + len(r.Text)/2
	case "silent":
		r.Hold = 1 + n + len(r.Text)/2
	case "slow":
		resume := make(chan struct{})
		time.AfterFunc(700*time.Millisecond, func() { close(resume) })
		r.Hold, r.Resume = 1+len(r.Text)/2, resume
	}
}

// readRequest returns the tag of the newest message in a request, how many steps of its turn are
// complete, and the text that the reply continues.
func readRequest(body []byte) (tag string, step int, partial string) {
	var req struct {
		Messages []struct {
			Role    string
			Content any
			Calls   []any `json:"tool_calls"`
		}
	}
	if err := json.Unmarshal(body, &req); err != nil {
		return fmt.Sprint(err), 0, ""
	}
	for i, m := range req.Messages {
		text, _ := m.Content.(string)
		switch {
		case m.Role == "user" && text == provider.Continue && i > 0:
			partial, _ = req.Messages[i-1].Content.(string)
		case m.Role == "user":
			tag, step, partial = "", 0, ""
			if found := tagLine.FindStringSubmatch(text); found != nil {
				tag = found[1]
			}
		case len(m.Calls) > 0:
			step++
		}
	}
	return tag, step, partial
}

// excuses reports whether the provider's failures may have failed the turn of a message.
func (p *chaosProvider) excuses(tag, code string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	m := p.messages[tag]
	if m == nil || len(m.bad) == 0 || p.requests[tag] < providerRequests ||
		code != string(event.ModelError) && code != string(event.ModelOverloaded) {
		return false
	}
	p.excused++
	return true
}

// failures returns the number of bad replies and of turns that they failed.
func (p *chaosProvider) failures() (spoiled, excused int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.spoiled, p.excused
}
