package admin

import (
	"context"
	"strconv"
	"time"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/session"
	"github.com/parley-server/parley/internal/toolenv"
)

// policyView is an egress policy.
type policyView struct {
	Public bool     `json:"public"`
	Hosts  []string `json:"hosts"`
}

func tagPolicy(p toolenv.Policy) tagged {
	tag := "0"
	if !p.UpdatedAt.IsZero() {
		tag = tagTime(p.UpdatedAt)
	}
	return tagged{policyView{p.Public, append([]string{}, p.Hosts...)}, tag}
}

func (s *api) getEgress(ctx context.Context, c *call) (any, error) {
	p, err := s.Runner.Policy(ctx, c.Caller.Workspace.ID)
	return tagPolicy(p), err
}

func (s *api) putEgress(ctx context.Context, c *call) (any, error) {
	p := toolenv.Policy{Public: c.body.Bool("public")}
	if c.body.Require("hosts") {
		p.Hosts = c.body.Strings("hosts", 200)
	}
	seen := c.expectedTime()
	if err := c.Err(); err != nil {
		return nil, err
	}
	p, err := s.Runner.SetPolicy(ctx, c.Caller.Workspace.ID, p, seen)
	return tagPolicy(p), err
}

// expectedTime returns the version in If-Match as tagTime formats it, nil for none. A text that is
// no version matches none.
func (c *call) expectedTime() *time.Time {
	tag := c.expected()
	if tag == "" {
		return nil
	}
	micros, _ := strconv.ParseInt(tag, 36, 64)
	return new(time.UnixMicro(micros))
}

// requestView is a request that a tool sent or was not allowed to send.
type requestView struct {
	ID          int64     `json:"request_id"`
	SessionID   uuid.UUID `json:"session_id"`
	TurnID      uuid.UUID `json:"turn_id"`
	ToolUseID   string    `json:"tool_use_id"`
	At          time.Time `json:"at"`
	Method      string    `json:"method"`
	URL         string    `json:"url"` // without its query
	Credentials []string  `json:"credentials"`
	Refused     []string  `json:"refused_credentials"`
	Decision    string    `json:"decision"`
	Times       int       `json:"times"`
	Status      *int      `json:"status"`
}

// maxRequests is the maximum number of requests in a response: they have no pages.
const maxRequests = 1000

// listRequests lists the newest requests; older ones have no page.
func (s *api) listRequests(ctx context.Context, c *call) (any, error) {
	limit, of := c.query.LimitTo(usualPage, maxRequests), c.query.ID("session_id")
	if err := c.Err(); err != nil {
		return nil, err
	}
	list, err := s.Runner.Requests(ctx, c.Caller.Workspace.ID, of, limit)
	if err != nil {
		return nil, err
	}
	views := make([]requestView, len(list))
	for i, r := range list {
		views[i] = requestView{r.ID, r.SessionID, r.TurnID, r.CallID, r.At.UTC(), r.Method, r.Scheme + "://" + r.Host + r.Path,
			append([]string{}, r.Credentials...), append([]string{}, r.Refused...), r.Decision, r.Times, r.Status}
	}
	return listed{session.Page[requestView]{Data: views}}, nil
}
