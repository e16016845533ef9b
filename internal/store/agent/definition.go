package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"

	"github.com/google/uuid"

	"github.com/parley-server/parley/db"
	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/search"
	"github.com/parley-server/parley/internal/store/permission"
	"github.com/parley-server/parley/internal/text"
)

// Definition is everything that decides what an agent does.
type Definition struct {
	Instructions string                      `json:"instructions"`
	Model        *string                     `json:"model"`           // provider/name; null: the service's own
	Effort       *string                     `json:"effort"`          // minimal, low, medium or high; null: the model's own
	Fallbacks    []string                    `json:"fallback_models"` // answer in place of a model that fails, in this order; null: those of the workspace
	Tools        map[string]permission.Label `json:"tools"`           // the offered tools; null: every tool
	Rules        map[string]string           `json:"rules"`           // allow, ask or deny by tool; null: none
	Limits       Limits                      `json:"limits"`
}

// Limits bound each turn of an agent.
type Limits struct {
	MaxResponseSeconds int      `json:"max_response_seconds"`
	MaxTurns           int      `json:"max_turns"`      // model calls
	HistoryTokens      *int     `json:"history_tokens"` // of earlier turns, for the model; null: as many as fit its window
	MaxCostUSD         *float64 `json:"max_cost_usd"`   // null: no limit
}

// Defaults returns the definition of a new agent.
func Defaults() Definition {
	return Definition{Limits: Limits{MaxResponseSeconds: 600, MaxTurns: 50}}
}

const (
	maxInstructions = 256 << 10
	maxModel        = 200
	maxFallbacks    = 8
	maxNote         = 1000
	maxCost         = 1_000_000
)

// Efforts lists the values of Definition.Effort.
var Efforts = []string{"minimal", "low", "medium", "high"}

// Violations returns all violations of a definition. own are the labels of the workspace's own
// tools.
func (d Definition) Violations(own map[string]permission.Label) []fault.Violation {
	var vs []fault.Violation
	wrong := func(param, rule, message string, args ...any) {
		vs = append(vs, fault.Violation{Param: "/" + param, Rule: rule, Message: fmt.Sprintf(message, args...)})
	}
	if !text.IsStorable(d.Instructions) || len(d.Instructions) > maxInstructions {
		wrong("instructions", "format", "Instructions are UTF-8 text without NUL, at most 256 KiB.")
	}
	if m := d.Model; m != nil && !isModelName(*m) {
		wrong("model", "format", "A model's name is provider/name, such as openai/gpt-5-mini.")
	}
	vs = append(vs, d.fallbackViolations()...)
	if e := d.Effort; e != nil && !slices.Contains(Efforts, *e) {
		wrong("effort", "enum", "effort %q is not one of %s.", text.Truncate(*e, 40), strings.Join(Efforts, ", "))
	}
	for _, tool := range slices.Sorted(maps.Keys(d.Tools)) {
		fixed, known := labelOf(own, tool)
		switch label := d.Tools[tool]; {
		case !known:
			vs = append(vs, unknownTool("/tools/", tool, own))
		case label != permission.ReadOnly && label != permission.Changes:
			wrong("tools/"+text.PointerToken(tool), "enum", "The label of a tool is read_only or changes.")
		case fixed == permission.Changes && label == permission.ReadOnly:
			wrong("tools/"+tool, "enum", "%s changes things, so its label is changes. The rule allow lets it run without approval.", tool)
		}
	}
	for _, tool := range slices.Sorted(maps.Keys(d.Rules)) {
		_, known := labelOf(own, tool)
		_, ok := permission.ParseVerdict(d.Rules[tool])
		switch {
		case !known:
			vs = append(vs, unknownTool("/rules/", tool, own))
		case permission.IsFixed(tool):
			wrong("rules/"+tool, "enum", "No rule can be set for %s: it always asks.", tool)
		case !ok:
			wrong("rules/"+tool, "enum", "The rule of a tool is allow, ask or deny.")
		}
	}
	for _, n := range []struct {
		param           string
		value, min, max int
	}{
		{"max_response_seconds", d.Limits.MaxResponseSeconds, 1, 3600},
		{"max_turns", d.Limits.MaxTurns, 1, 200},
	} {
		if n.value < n.min || n.value > n.max {
			wrong("limits/"+n.param, "range", "%s is %d to %d.", n.param, n.min, n.max)
		}
	}
	if n := d.Limits.HistoryTokens; n != nil && (*n < 0 || *n > MaxHistoryTokens) {
		wrong("limits/history_tokens", "range", "history_tokens is 0 to %d, or null for as many as fit the model's window.", MaxHistoryTokens)
	}
	if c := d.Limits.MaxCostUSD; c != nil && !(*c >= 0 && *c <= maxCost) {
		wrong("limits/max_cost_usd", "range", "max_cost_usd is 0 to %d.", maxCost)
	}
	return vs
}

func isModelName(s string) bool {
	provider, name, _ := strings.Cut(s, "/")
	return provider != "" && name != "" && text.IsStorable(s) && len(s) <= maxModel && !strings.ContainsFunc(s, unicode.IsControl)
}

func (d Definition) fallbackViolations() (vs []fault.Violation) {
	if len(d.Fallbacks) > maxFallbacks {
		vs = append(vs, fault.Violation{Param: "/fallback_models", Rule: "max_items",
			Message: fmt.Sprintf("An agent has at most %d fallback models.", maxFallbacks)})
	}
	for i, name := range d.Fallbacks {
		if param := fmt.Sprintf("/fallback_models/%d", i); !isModelName(name) {
			vs = append(vs, fault.Violation{Param: param, Rule: "format",
				Message: fmt.Sprintf("%.80q is not the name of a model, such as openai/gpt-5-mini.", name)})
		} else if slices.Contains(d.Fallbacks[:i], name) {
			vs = append(vs, fault.Violation{Param: param, Rule: "unique", Message: name + " is in the list twice."})
		}
	}
	return vs
}

// labelOf returns the label of a tool, built in or one of own.
func labelOf(own map[string]permission.Label, tool string) (permission.Label, bool) {
	if label, known := permission.LabelOf(tool); known {
		return label, true
	}
	label, known := own[tool]
	return label, known
}

// ownTools returns the labels of the workspace's own tools.
func ownTools(ctx context.Context, q *db.Queries, workspace uuid.UUID) (map[string]permission.Label, error) {
	rows, err := q.ToolLabels(ctx, workspace)
	if err != nil {
		return nil, fmt.Errorf("read the labels of tools: %w", err)
	}
	own := make(map[string]permission.Label, len(rows))
	for _, r := range rows {
		own[r.Name] = permission.Label(r.Label)
	}
	return own, nil
}

func unknownTool(at, tool string, own map[string]permission.Label) fault.Violation {
	v := fault.Violation{Param: at + text.PointerToken(text.Truncate(tool, 100)), Rule: "unknown",
		Message: fmt.Sprintf("Unknown tool %.100q.", tool)}
	if near := search.Nearest(tool, slices.Concat(permission.Tools(), slices.Sorted(maps.Keys(own))), 1); len(near) > 0 {
		v.Message += fmt.Sprintf(" Did you mean %s?", near[0])
		v.Suggestion = near[0]
	}
	return v
}

// equal reports whether two definitions are the same.
func (d Definition) equal(other Definition) bool {
	a, errA := json.Marshal(d)
	b, errB := json.Marshal(other)
	return errA == nil && errB == nil && string(a) == string(b)
}

func versionOf(r db.AgentVersion) (Version, error) {
	v := Version{ID: r.ID, Number: int(r.Number), Author: r.Author, Note: r.Note, CreatedAt: r.CreatedAt, Definition: Definition{
		Instructions: r.Instructions, Model: r.Model, Effort: r.Effort, Fallbacks: r.FallbackModels,
		Limits: Limits{MaxResponseSeconds: int(r.MaxResponseSeconds), MaxTurns: int(r.MaxTurns),
			HistoryTokens: ParseHistory(r.HistoryTokens), MaxCostUSD: r.MaxCostUSD},
	}}
	if r.Tools != nil {
		if err := json.Unmarshal(r.Tools, &v.Tools); err != nil {
			return v, fmt.Errorf("read the tools of version %s: %w", r.ID, err)
		}
	}
	if r.Rules != nil {
		if err := json.Unmarshal(r.Rules, &v.Rules); err != nil {
			return v, fmt.Errorf("read the rules of version %s: %w", r.ID, err)
		}
	}
	return v, nil
}

// params converts a definition without violations to a row of an agent.
func (d Definition) params(a Agent, number int, author, note string) (db.AgentVersionInsertParams, error) {
	p := db.AgentVersionInsertParams{
		AgentID: a.ID, WorkspaceID: a.workspace, Number: int32(number), Instructions: d.Instructions, Model: d.Model, Effort: d.Effort,
		FallbackModels:     d.Fallbacks,
		MaxResponseSeconds: int32(d.Limits.MaxResponseSeconds), MaxTurns: int32(d.Limits.MaxTurns),
		HistoryTokens: StoredHistory(d.Limits.HistoryTokens),
		MaxCostUSD:    d.Limits.MaxCostUSD, Author: author, Note: note,
	}
	var err error
	if d.Tools != nil {
		if p.Tools, err = json.Marshal(d.Tools); err != nil {
			return p, fmt.Errorf("encode the tools of an agent: %w", err)
		}
	}
	if len(d.Rules) > 0 {
		if p.Rules, err = json.Marshal(d.Rules); err != nil {
			return p, fmt.Errorf("encode the rules of an agent: %w", err)
		}
	}
	return p, nil
}
