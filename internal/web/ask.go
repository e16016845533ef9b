package web

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/session"
	"github.com/parley-server/parley/internal/store/apikey"
	"github.com/parley-server/parley/internal/text"
	"github.com/parley-server/parley/internal/text/render"
	"github.com/parley-server/parley/internal/turn"
)

// ask is an approval, a secret request or the link for a tool server as its card shows it. The
// inbox renders it, and the playground gets it as JSON, so that both show the same characters.
type ask struct {
	ID        uuid.UUID   `json:"id"`
	Kind      event.Input `json:"kind"`
	Status    string      `json:"status"`
	Now       time.Time   `json:"now"` // the server's clock, for the countdown
	ExpiresAt time.Time   `json:"expires_at"`
	SessionID uuid.UUID   `json:"session_id"`
	TurnID    uuid.UUID   `json:"turn_id"`
	Title     string      `json:"title"`
	From      string      `json:"from"` // by whom or with which key the message was sent
	Says      []string    `json:"says,omitempty"`
	Answer    *askAnswer  `json:"answer,omitempty"`

	Ops     []askOperation `json:"ops,omitempty"`
	Pattern string         `json:"pattern,omitempty"` // suggested; "": this member can add none
	Hint    string         `json:"pattern_hint,omitempty"`
	Allow   string         `json:"allow,omitempty"` // label of the button; "": this member cannot allow it
	Deny    string         `json:"deny,omitempty"`
	Note    string         `json:"note,omitempty"` // between the buttons

	KeyName string   `json:"key_name,omitempty"`
	Hosts   []string `json:"hosts,omitempty"`

	Server     string `json:"server,omitempty"`      // tool server to connect
	ConnectURL string `json:"connect_url,omitempty"` // "": this member cannot connect it, or it is answered
}

// askOperation is a call of the step.
type askOperation struct {
	Tool     []piece   `json:"tool"`
	Summary  []piece   `json:"summary"`
	Asks     bool      `json:"asks"`
	Role     string    `json:"role"`
	Lines    [][]piece `json:"lines"`
	Warnings []string  `json:"warnings,omitempty"`
}

// askAnswer is the line that a card becomes.
type askAnswer struct {
	Word string `json:"word"`
	Rest string `json:"rest"`
}

// Left renders the time that is left.
func (k ask) Left() string {
	left := max(0, int(k.ExpiresAt.Sub(k.Now).Seconds()+0.999))
	return fmt.Sprintf("%d:%02d", left/60, left%60)
}

// Icon and Tone are the look of an answered request.
func (k ask) Icon() string {
	switch event.Outcome(k.Status) {
	case event.Allowed, event.Provided:
		return "check"
	case event.Denied, event.Skipped:
		return "close"
	}
	return "clock"
}

func (k ask) Tone() string {
	switch event.Outcome(k.Status) {
	case event.Allowed, event.Provided:
		return "ok"
	case event.Denied:
		return "bad"
	}
	return ""
}

// First is the first call, for a list.
func (k ask) First() string {
	if name := k.KeyName + k.Server; name != "" {
		return name
	}
	for _, op := range k.Ops {
		if op.Asks {
			return flat(op.Tool) + " " + strings.TrimPrefix(flat(op.Summary), flat(op.Tool)+" ")
		}
	}
	return ""
}

func flat(spans []piece) string {
	var b strings.Builder
	for _, s := range spans {
		b.WriteString(s.Text)
	}
	return b.String()
}

// asker makes the cards of one page. It reads each session and the names of the keys once.
type asker struct {
	*page
	now    time.Time
	titles map[uuid.UUID]string
	names  map[string]string
}

func newAsker(p *page) *asker {
	return &asker{page: p, now: time.Now(), titles: make(map[uuid.UUID]string)}
}

// card returns the card of an approval.
func (k *asker) card(ctx context.Context, a session.Approval) (ask, error) {
	var req event.InputRequired
	if len(a.Request) > 0 {
		if err := json.Unmarshal(a.Request, &req); err != nil {
			return ask{}, fmt.Errorf("read the question: %w", err)
		}
	}
	v := ask{ID: a.ApprovalID, Kind: a.Kind, Status: a.Status, Now: k.now, ExpiresAt: a.ExpiresAt, SessionID: a.SessionID, TurnID: a.TurnID,
		KeyName: req.KeyName}
	if a.Status == "pending" { // PostgreSQL's clock decides
		v.Now = a.ExpiresAt.Add(-time.Duration(a.SecondsLeft) * time.Second)
	}
	var err error
	if v.Title, err = k.title(ctx, a.SessionID); err != nil {
		return v, err
	}
	sender, _, _, err := k.App.srv.Sessions.ApprovalSender(ctx, k.Workspace.ID, a.ApprovalID)
	if err != nil {
		return v, err
	}
	if v.From, err = k.name(ctx, sender); err != nil {
		return v, err
	}
	v.From = map[bool]string{true: "with ", false: "by "}[strings.HasPrefix(v.From, "key ")] + v.From
	switch a.Kind {
	case event.InputSecret:
		v.Says = said(req.Reason)
		err = k.secret(ctx, &v)
	case event.InputConnect:
		err = k.connection(&v, a.Request)
	default:
		k.operations(&v, req)
	}
	if err == nil && a.Status != "pending" {
		v.Answer, err = k.answer(ctx, a)
	}
	if v.Answer != nil && v.Server != "" {
		v.Answer.Rest = v.Server + ", " + v.Answer.Rest
	}
	return v, err
}

// said returns the lines of the agent's text.
func said(words string) []string {
	marked := render.Marked(words)
	if marked == "" {
		return nil
	}
	lines := strings.Split(marked, "\n")
	for i, line := range lines {
		lines[i] = strings.TrimPrefix(strings.TrimPrefix(line, ">"), " ")
	}
	return lines
}

// operations adds the calls of the step, and what this member may answer.
func (k *asker) operations(v *ask, req event.InputRequired) {
	var summaries, scopes []string
	step := req.Step()
	asking := 0
	for i, c := range step {
		op := askOperation{Tool: inline(c.Tool), Summary: inline(c.Summary), Asks: c.Asks, Role: "needs approval"}
		if !c.Asks {
			op.Role = "runs without an approval"
		} else {
			asking++
			summaries = append(summaries, c.Summary)
			if c.RequiredScope != "" && !k.Can(c.RequiredScope) {
				scopes = append(scopes, c.RequiredScope)
			}
			if v.Pattern == "" && c.SuggestedPattern != "" {
				v.Pattern = c.SuggestedPattern
				v.Hint = covered(len(step), i)
			}
		}
		op.Lines, op.Warnings = renderCall(c.Tool, c.Input)
		v.Ops = append(v.Ops, op)
	}
	if req.Plan != strings.Join(summaries, "; ") { // without text of the agent, the plan consists of the summaries
		v.Says = said(req.Plan)
	}
	switch {
	case !k.Can(string(apikey.ToolsWrite)):
		v.Pattern, v.Note = "", "Your role can only read this. An approver answers it."
	case len(scopes) > 0:
		v.Deny, v.Pattern = "Deny", ""
		v.Note = "Only a member with the scope " + strings.Join(scopes, " and ") + " can allow this."
	default:
		v.Deny, v.Allow, v.Note = "Deny", "Allow once", "Runs exactly what is shown, once."
		if asking == 2 {
			v.Allow = "Allow both"
		} else if asking > 2 {
			v.Allow = fmt.Sprintf("Allow all %d", asking)
		}
	}
}

func covered(calls, i int) string {
	if calls == 1 {
		return "Covers this call."
	}
	return fmt.Sprintf("Covers operation %d.", i+1)
}

// secret adds where the value may go, and what this member may answer.
func (k *asker) secret(ctx context.Context, v *ask) error {
	if k.App.srv.Vault != nil {
		all, err := k.App.srv.Vault.List(ctx, k.Workspace.ID)
		if err != nil {
			return err
		}
		for _, c := range all {
			if c.Name == v.KeyName {
				v.Hosts = c.Hosts
			}
		}
	}
	if !k.Can(string(apikey.Secret)) {
		v.Note = "Your role cannot provide secrets."
		return nil
	}
	v.Deny, v.Allow = "Skip", "Provide"
	return nil
}

// connection adds the tool server that a call needs, and the link for members who send messages.
func (k *asker) connection(v *ask, request []byte) error {
	var req event.ConnectRequired
	if err := json.Unmarshal(request, &req); err != nil {
		return fmt.Errorf("read the question: %w", err)
	}
	v.Server = text.Mask(req.Server)
	switch {
	case v.Status != "pending":
	case !k.Can(string(apikey.Chat)):
		v.Note = "Your role can only read this."
	case isConnectLink(req.ConnectURL):
		v.ConnectURL, v.Note = req.ConnectURL, "Opens in a new tab. The link works once."
	default:
		v.Note = "The tool server was removed."
	}
	return nil
}

// isConnectLink reports whether an address is that of a page that connects a tool server.
func isConnectLink(address string) bool {
	u, err := url.Parse(address)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" && strings.Contains(u.Path, turn.ConnectPath)
}

// title returns the title of a session.
func (k *asker) title(ctx context.Context, id uuid.UUID) (string, error) {
	if t, ok := k.titles[id]; ok {
		return t, nil
	}
	s, err := k.App.srv.Sessions.Summary(ctx, k.Workspace.ID, id)
	if err != nil {
		return "", err
	}
	k.titles[id] = text.Mask(s.Title)
	return k.titles[id], nil
}

// name returns who an id of a key or a member is.
func (k *asker) name(ctx context.Context, id string) (string, error) {
	if k.names == nil {
		keys, err := k.App.srv.Keys.List(ctx, k.Workspace.ID)
		if err != nil {
			return "", err
		}
		k.names = make(map[string]string, len(keys))
		for _, key := range keys {
			k.names[key.ID] = "key " + text.Mask(key.Name)
		}
	}
	if k.names[id] == "" && strings.HasPrefix(id, apikey.MemberPrefix) {
		u, err := k.App.accounts.User(ctx, id)
		if err != nil && fault.From(err) == nil {
			return "", err
		}
		k.names[id] = text.Mask(u.DisplayName()) // "" for a user who was removed
	}
	if name := k.names[id]; name != "" {
		return name, nil
	}
	return id, nil
}

// answer describes how a request ended.
func (k *asker) answer(ctx context.Context, a session.Approval) (*askAnswer, error) {
	at := ""
	if a.DecidedAt != nil {
		at = a.DecidedAt.Format("15:04:05") + " UTC"
	}
	words := map[string]string{"allowed": "Allowed", "denied": "Denied", "provided": "Provided", "skipped": "Skipped"}
	if a.Kind == event.InputConnect { // the link answers, for anyone who has used it
		words = map[string]string{"provided": "Connected", "skipped": "Declined"}
	}
	word := words[a.Status]
	switch {
	case a.Status == string(event.Expired):
		return &askAnswer{"Expired", fmt.Sprintf("after %s without an answer, %s", wait(a.ExpiresAt.Sub(a.CreatedAt)), at)}, nil
	case word == "":
		return &askAnswer{"Canceled", "with its turn, " + at}, nil
	}
	by := ""
	if d := a.DecidedBy; d != nil && a.Kind != event.InputConnect {
		by = text.Mask(d.Actor)
		if by == "" {
			name, err := k.name(ctx, d.KeyID)
			if err != nil {
				return nil, err
			}
			by = name
		}
		by = "by " + by + ", "
	}
	rest := by + at
	if a.Pattern != nil {
		rest += ", pattern " + *a.Pattern
	}
	if a.Reason != nil {
		rest += ", “" + text.Mask(*a.Reason) + "”"
	}
	return &askAnswer{word, rest}, nil
}

// wait renders the time that a request waited.
func wait(d time.Duration) string {
	if d >= time.Minute {
		return plural(int(d.Round(time.Minute)/time.Minute), "minute", "minutes")
	}
	return plural(int(d.Round(time.Second)/time.Second), "second", "seconds")
}
