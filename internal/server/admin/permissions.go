package admin

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/server/request"
	"github.com/parley-server/parley/internal/session"
	"github.com/parley-server/parley/internal/store/permission"
	"github.com/parley-server/parley/internal/store/toolset"
)

// toolView is a tool with its rule, built in or the workspace's own.
type toolView struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Schema      json.RawMessage `json:"input_schema"`
	Unavailable *string         `json:"unavailable"` // the reason
	Default     string          `json:"default_rule"`
	Rule        *string         `json:"rule"` // null: the built-in one
	Since       *time.Time      `json:"rule_since"`
	Server      *string         `json:"server,omitempty"` // of a tool of the workspace's own
	Label       *toolset.Label  `json:"label,omitempty"`
}

func (s *api) listTools(ctx context.Context, c *call) (any, error) {
	list, err := s.toolViews(ctx, c)
	if err != nil {
		return nil, err
	}
	return paged(c, list, func(t toolView) string { return t.Name })
}

// toolViews lists the tools by name. A tool without a specification is not offered on this server.
func (s *api) toolViews(ctx context.Context, c *call) ([]toolView, error) {
	settings, err := s.Permissions.Settings(ctx, c.Caller.Workspace.ID)
	if err != nil {
		return nil, err
	}
	servers, err := s.Toolset.List(ctx, c.Caller.Workspace.ID)
	if err != nil {
		return nil, err
	}
	list := make([]toolView, len(settings))
	for i, set := range settings {
		t := toolView{Name: set.Tool, Default: set.Default, Since: set.Since, Schema: json.RawMessage("null")}
		if set.Rule != nil {
			t.Rule = new(set.Rule.String())
		}
		for _, spec := range s.Tools() {
			if spec.Name != set.Tool {
				continue
			}
			t.Description, t.Schema = spec.Description, spec.Schema
			if spec.Unavailable != "" {
				t.Unavailable = &spec.Unavailable
			}
		}
		if set.Label != "" {
			t.describeOwn(servers)
		}
		list[i] = t
	}
	slices.SortFunc(list, func(a, b toolView) int { return strings.Compare(a.Name, b.Name) })
	return list, nil
}

// describeOwn fills in the description of a tool of the workspace's own.
func (t *toolView) describeOwn(servers []toolset.Server) {
	for _, server := range servers {
		for _, own := range server.Tools {
			if own.Name != t.Name {
				continue
			}
			t.Server, t.Label = &server.Name, &own.Label
			if own.Definition != nil {
				t.Description, t.Schema = own.Definition.Description, own.Definition.Schema
			}
			switch state := own.State(); {
			case !server.Enabled:
				t.Unavailable = new("Its tool server is disabled.")
			case state != toolset.Usable:
				t.Unavailable = new("It is " + string(state) + ".")
			}
		}
	}
}

func (s *api) putToolRule(ctx context.Context, c *call) (any, error) {
	c.body.Require("rule")
	v, _ := permission.ParseVerdict(c.body.Enum("rule", "allow", "ask", "deny"))
	if err := c.Err(); err != nil {
		return nil, err
	}
	if err := s.Permissions.Set(ctx, c.Caller.Workspace.ID, c.PathValue("tool"), v); err != nil {
		return nil, c.toolError(err)
	}
	return s.findTool(ctx, c)
}

func (s *api) deleteToolRule(ctx context.Context, c *call) (any, error) {
	before, err := s.toolViews(ctx, c)
	if err != nil {
		return nil, err
	}
	if err := s.Permissions.Reset(ctx, c.Caller.Workspace.ID, c.PathValue("tool")); err != nil {
		return nil, c.toolError(err)
	}
	after, err := s.findTool(ctx, c)
	i := slices.IndexFunc(before, func(t toolView) bool { return t.Name == c.PathValue("tool") })
	if f := fault.From(err); f != nil && f.Code == fault.ObjectNotFound && i >= 0 { // a tool of callers is known by its rule
		before[i].Rule, before[i].Since = nil, nil
		return before[i], nil
	}
	return after, err
}

func (s *api) findTool(ctx context.Context, c *call) (any, error) {
	list, err := s.toolViews(ctx, c)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(list, func(t toolView) bool { return t.Name == c.PathValue("tool") })
	if i < 0 {
		return nil, c.toolError(nil)
	}
	return list[i], nil
}

// toolError reports a tool in the path that does not exist like other objects.
func (c *call) toolError(err error) error {
	switch f := fault.From(err); {
	case permission.IsTool(c.PathValue("tool")):
		return err
	case f != nil:
		return asNotFound(err)
	}
	return notFound("tool", c.PathValue("tool"))
}

// entryView is a pattern of the allow-list.
type entryView struct {
	ID         uuid.UUID  `json:"allowlist_id"`
	Tool       string     `json:"tool"`
	Pattern    string     `json:"pattern"`
	AddedBy    string     `json:"added_by"` // key id, or cli:USER
	ApprovalID *uuid.UUID `json:"approval_id"`
	Hits       int64      `json:"hits"`
	LastHitAt  *time.Time `json:"last_hit_at"`
	CreatedAt  time.Time  `json:"created_at"`
	RevokedAt  *time.Time `json:"revoked_at"`
}

func viewEntry(e permission.Entry) entryView {
	return entryView{e.ID, e.Tool, e.Pattern, e.AddedBy, e.ApprovalID, e.Hits, e.LastHitAt, e.CreatedAt.UTC(), e.RevokedAt}
}

func (s *api) listAllowlist(ctx context.Context, c *call) (any, error) {
	list, err := s.Permissions.List(ctx, c.Caller.Workspace.ID)
	if err != nil {
		return nil, err
	}
	views := make([]entryView, len(list))
	for i, e := range list {
		views[i] = viewEntry(e)
	}
	return paged(c, views, func(e entryView) string { return strconv.FormatInt(e.CreatedAt.UnixMicro(), 10) + e.ID.String() })
}

func (s *api) addPattern(ctx context.Context, c *call) (any, error) {
	pattern := c.body.RequiredString("pattern", permission.MaxPattern)
	if err := c.Err(); err != nil {
		return nil, err
	}
	ws := c.Caller.Workspace.ID
	stored, err := s.Permissions.AddRule(ctx, permission.Rule{Workspace: ws, Key: cmp.Or(c.Caller.Key, c.Caller.Command), Pattern: pattern})
	if err != nil {
		return nil, err
	}
	list, err := s.Permissions.List(ctx, ws)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(list, func(e permission.Entry) bool { return e.Pattern == stored && e.RevokedAt == nil })
	if i < 0 {
		return nil, fault.New(fault.ObjectConflict, "Another administrator revoked the pattern at the same moment.")
	}
	return viewEntry(list[i]), nil
}

func (s *api) revokePattern(ctx context.Context, c *call) (any, error) {
	id, _ := uuid.Parse(c.PathValue("allowlistId")) // no entry has the zero id
	ok, err := s.Permissions.Revoke(ctx, c.Caller.Workspace.ID, id)
	if err == nil && !ok {
		err = notFound("pattern in force", c.PathValue("allowlistId"))
	}
	return deleted{id.String(), true}, err
}

// preview is what a pattern covers among the calls that needed an approval of late.
type preview struct {
	Pattern string        `json:"pattern"`
	Calls   int           `json:"calls"` // looked at
	Matches []previewCall `json:"matches"`
}

type previewCall struct {
	ApprovalID uuid.UUID       `json:"approval_id"`
	At         time.Time       `json:"at"`
	Status     string          `json:"status"`
	Summary    string          `json:"summary"`
	Input      json.RawMessage `json:"input"`
}

func (s *api) previewPattern(ctx context.Context, c *call) (any, error) {
	text := c.body.RequiredString("pattern", permission.MaxPattern)
	if err := c.Err(); err != nil {
		return nil, err
	}
	pattern, err := permission.Parse(text)
	if err != nil {
		return nil, err
	}
	recent, err := s.Sessions.Approvals(ctx, c.Caller.Workspace.ID, session.ApprovalQuery{Limit: request.MaxPage})
	if err != nil {
		return nil, err
	}
	p := preview{Pattern: pattern.String(), Matches: []previewCall{}}
	for _, a := range recent.Data {
		var asked event.InputRequired
		if a.Kind != event.InputApproval || json.Unmarshal(a.Request, &asked) != nil {
			continue
		}
		for _, op := range asked.Operations {
			if p.Calls++; pattern.Matches(op.Tool, op.Input) {
				p.Matches = append(p.Matches, previewCall{a.ApprovalID, a.CreatedAt, a.Status, op.Summary, op.Input})
			}
		}
	}
	return p, nil
}
