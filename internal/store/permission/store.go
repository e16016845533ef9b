package permission

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-server/parley/db"
	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/replan"
	"github.com/parley-server/parley/internal/search"
)

// Setting is the treatment of a tool in a workspace.
type Setting struct {
	Tool    string
	Default string   // the built-in rule, in words
	Rule    *Verdict // rule that the workspace has set instead
	Since   *time.Time
	Label   Label // of a tool of the workspace's own; "" for a built-in one
}

// Store reads and writes permissions.
type Store struct {
	pool *pgxpool.Pool
	q    *db.Queries
	hits hits
}

// New makes a store.
func New(pool *pgxpool.Pool) *Store { return &Store{pool: pool, q: db.New(replan.Pool{Pool: pool})} }

// Rules reads the current rules of a workspace for tool calls, in one query.
func (s *Store) Rules(ctx context.Context, workspace uuid.UUID) (Rules, error) {
	if err := s.Flush(ctx); err != nil {
		return Rules{}, err
	}
	rows, err := s.q.PermissionRules(ctx, workspace)
	if err != nil {
		return Rules{}, fmt.Errorf("read permissions: %w", err)
	}
	r := Rules{set: make(map[string]Verdict), own: make(map[string]Label), allow: make(map[string][]allowed), hits: &s.hits}
	for _, row := range rows {
		switch v, ok := ParseVerdict(row.Rule); {
		case row.ID != nil:
			r.allow[row.Tool] = append(r.allow[row.Tool], allowed{id: *row.ID, pattern: row.Rule})
		case ok:
			r.set[row.Tool] = v
		case row.Rule == string(ReadOnly) || row.Rule == string(Changes):
			r.own[row.Tool] = Label(row.Rule)
		default:
			r.own[row.Tool] = ""
		}
	}
	return r, nil
}

// Flush stores the use counts of entries, each at most once a minute. Rules also does so; a caller
// that judges calls must call Flush at its end.
func (s *Store) Flush(ctx context.Context) error {
	for id, n := range s.hits.dueHits(time.Now()) {
		if err := s.q.AllowlistHits(ctx, id, n); err != nil {
			return fmt.Errorf("note the use of the allow-list: %w", err)
		}
	}
	return nil
}

// Settings lists every tool, by name, with its rule in a workspace: the built-in ones, then the
// workspace's own, then the tools of callers that are denied.
func (s *Store) Settings(ctx context.Context, workspace uuid.UUID) ([]Setting, error) {
	rows, err := s.q.ToolRules(ctx, workspace)
	if err != nil {
		return nil, fmt.Errorf("read the rules of tools: %w", err)
	}
	own, err := s.ownLabels(ctx, workspace)
	if err != nil {
		return nil, err
	}
	settings := make([]Setting, 0, len(tools)+len(own))
	for _, name := range append(sortedNames(tools), sortedNames(own)...) {
		set := Setting{Tool: name, Default: tools[name].rule}
		if label, ok := own[name]; ok {
			set.Default, set.Label = ownKinds[label].rule, label
		}
		for _, row := range rows {
			if v, ok := ParseVerdict(row.Rule); ok && row.Tool == name {
				set.Rule, set.Since = &v, &row.UpdatedAt
			}
		}
		settings = append(settings, set)
	}
	for _, row := range rows {
		if v, ok := ParseVerdict(row.Rule); ok && !IsTool(row.Tool) && own[row.Tool] == "" {
			settings = append(settings, Setting{Tool: row.Tool, Default: callerRule, Rule: &v, Since: &row.UpdatedAt})
		}
	}
	return settings, nil
}

// Set sets a workspace's rule for a tool.
func (s *Store) Set(ctx context.Context, workspace uuid.UUID, tool string, v Verdict) error {
	if err := s.checkSettable(ctx, workspace, tool, v == Deny); err != nil {
		return err
	}
	if err := s.q.ToolRuleSet(ctx, workspace, tool, v.String()); err != nil {
		return fmt.Errorf("set the rule of a tool: %w", err)
	}
	return nil
}

// Reset restores the built-in rule of a tool.
func (s *Store) Reset(ctx context.Context, workspace uuid.UUID, tool string) error {
	rows, err := s.q.ToolRules(ctx, workspace)
	if err != nil {
		return fmt.Errorf("read the rules of tools: %w", err)
	}
	has := slices.ContainsFunc(rows, func(r db.ToolRulesRow) bool { return r.Tool == tool })
	if err := s.checkSettable(ctx, workspace, tool, has); err != nil {
		return err
	}
	if err := s.q.ToolRuleDelete(ctx, workspace, tool); err != nil {
		return fmt.Errorf("reset the rule of a tool: %w", err)
	}
	return nil
}

// ownLabels returns the labels of a workspace's own tools.
func (s *Store) ownLabels(ctx context.Context, workspace uuid.UUID) (map[string]Label, error) {
	rows, err := s.q.ToolLabels(ctx, workspace)
	if err != nil {
		return nil, fmt.Errorf("read the labels of tools: %w", err)
	}
	own := make(map[string]Label, len(rows))
	for _, r := range rows {
		own[r.Name] = Label(r.Label)
	}
	return own, nil
}

// callerRule is the rule of a tool that callers bring along, in words.
const callerRule = "allow"

// callerTool matches the names of tools that callers bring along.
var callerTool = regexp.MustCompile(`^[a-zA-Z][a-zA-Z0-9]*([-_][a-zA-Z0-9]+)*$`)

// checkSettable reports a tool that no rule can be set for. A tool of callers, which has an unknown
// name, can only be denied.
func (s *Store) checkSettable(ctx context.Context, workspace uuid.UUID, tool string, deny bool) error {
	own, err := s.ownLabels(ctx, workspace)
	if err != nil {
		return err
	}
	v := fault.Violation{Param: "/tool", Rule: "enum"}
	switch t, known := tools[tool]; {
	case own[tool] != "":
		return nil
	case !known:
		v.Message = fmt.Sprintf("Unknown tool %q.", tool)
		near := search.Nearest(tool, append(sortedNames(tools), sortedNames(own)...), 1)
		isTypo := len(near) > 0 && !strings.Contains(tool, near[0]) // read_mail is none of read
		if deny && !isTypo && len(tool) <= 64 && callerTool.MatchString(tool) {
			return nil
		}
		if len(near) > 0 {
			v.Message += fmt.Sprintf(" Did you mean %s?", near[0])
			v.Suggestion = near[0]
		}
	case t.fixed:
		v.Message = "No rule can be set for " + tool + ": it always asks."
	default:
		return nil
	}
	return fault.Invalid(v)
}
