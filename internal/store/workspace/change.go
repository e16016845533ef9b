package workspace

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/parley-server/parley/db"
	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/store/agent"
	"github.com/parley-server/parley/internal/text"
)

// Change lists the fields of a workspace to set. A nil field stays unchanged.
type Change struct {
	// Seen is the UpdatedAt of the workspace that the change is made from. If it has changed since,
	// Update fails with PRECONDITION_FAILED. Nil: it may have.
	Seen *time.Time

	Name         *string // display name
	Instructions *string // instructions for the agent
	Model        *string // provider/name; "" is the service's own

	MaxResponseSeconds *int // time limit of a turn
	MaxTurns           *int // model calls in a turn
	MaxRunning         *int // turns at once
	HistoryTokens      *int // maximum tokens of earlier turns for the model; -1: as many as fit its window

	StorageQuota *int // bytes of files, folders and documents together; 0: unlimited

	// Limits of each key: 0 is unlimited, -1 the service's own.
	MessagesPerMinute *int
	CallsPerMinute    *int
	OpenStreams       *int

	SeparateApprover *bool // the key that sent a message cannot allow its calls
	AdminPatterns    *bool // decisions add no patterns to the allow-list; the command line does

	CallerInstructions *bool // messages may have instructions of the caller
	CallerParameters   *bool // messages may have parameters of the model

	FallbackModels *[]string // full names, the first one first

	ReasoningSummaries *bool // summaries of the reasoning are requested, stored and sent

	SearchLanguage *string // language of the documents, one of SearchLanguages
}

const (
	maxName         = 200
	maxInstructions = 256 << 10
)

// Violations returns all violations of a change.
func (c Change) Violations() []fault.Violation {
	var vs []fault.Violation
	wrong := func(param, rule, message string) {
		vs = append(vs, fault.Violation{Param: "/" + param, Rule: rule, Message: message})
	}
	if s := c.Name; s != nil && (!text.IsStorable(*s) || strings.TrimSpace(*s) == "" || utf8.RuneCountInString(*s) > maxName ||
		strings.ContainsFunc(*s, unicode.IsControl)) {
		wrong("name", "format", fmt.Sprintf("What people see of a workspace is 1 to %d characters on one line.", maxName))
	}
	if s := c.Instructions; s != nil && (!text.IsStorable(*s) || len(*s) > maxInstructions) {
		wrong("instructions", "format", "Instructions are UTF-8 text without NUL, at most 256 KiB.")
	}
	if s := c.Model; s != nil && *s != "" && !isModelName(*s) {
		wrong("model", "format", "A model's name is provider/name, such as openai/gpt-5-mini.")
	}
	vs = append(vs, c.fallbackViolations()...)
	vs = append(vs, c.languageViolations()...)
	for _, n := range []struct {
		param    string
		value    *int
		min, max int
	}{
		{"max_response_seconds", c.MaxResponseSeconds, 1, 3600},
		{"max_turns", c.MaxTurns, 1, 200},
		{"max_running", c.MaxRunning, 1, 10_000},
		{"history_tokens", c.HistoryTokens, -1, agent.MaxHistoryTokens},
		{"storage_quota", c.StorageQuota, 0, 1 << 50},
		{"messages_per_minute", c.MessagesPerMinute, -1, 1_000_000},
		{"calls_per_minute", c.CallsPerMinute, -1, 1_000_000},
		{"open_streams", c.OpenStreams, -1, 1_000_000},
	} {
		if n.value != nil && (*n.value < n.min || *n.value > n.max) {
			wrong(n.param, "range", fmt.Sprintf("%s is %d to %d.", n.param, n.min, n.max))
		}
	}
	return vs
}

func isModelName(s string) bool {
	provider, name, _ := strings.Cut(s, "/")
	return provider != "" && name != "" && text.IsStorable(s) && len(s) <= maxName && !strings.ContainsFunc(s, unicode.IsControl)
}

// MaxFallbacks is how many fallback models a workspace has.
const MaxFallbacks = 8

func (c Change) fallbackViolations() (vs []fault.Violation) {
	if c.FallbackModels == nil {
		return nil
	}
	list := *c.FallbackModels
	if len(list) > MaxFallbacks {
		vs = append(vs, fault.Violation{Param: "/fallback_models", Rule: "max_items",
			Message: fmt.Sprintf("A workspace has at most %d fallback models.", MaxFallbacks)})
	}
	for i, name := range list {
		if param := fmt.Sprintf("/fallback_models/%d", i); !isModelName(name) {
			vs = append(vs, fault.Violation{Param: param, Rule: "format",
				Message: fmt.Sprintf("%.80q is not the name of a model, such as openai/gpt-5-mini.", name)})
		} else if slices.Contains(list[:i], name) {
			vs = append(vs, fault.Violation{Param: param, Rule: "unique", Message: name + " is in the list twice."})
		}
	}
	return vs
}

// updateParams converts a change without violations.
func (c Change) updateParams(id uuid.UUID) db.WorkspaceUpdateParams {
	return db.WorkspaceUpdateParams{
		ID: id, Seen: c.Seen, Name: c.Name, Instructions: c.Instructions, Model: c.Model,
		MaxResponseSeconds: narrowInt(c.MaxResponseSeconds), MaxTurns: narrowInt(c.MaxTurns),
		MaxRunning: narrowInt(c.MaxRunning), HistoryTokens: c.historyParam(), StorageQuota: wideInt(c.StorageQuota),
		MessagesPerMinute: narrowInt(c.MessagesPerMinute), CallsPerMinute: narrowInt(c.CallsPerMinute), OpenStreams: narrowInt(c.OpenStreams),
		SeparateApprover: c.SeparateApprover, AdminPatterns: c.AdminPatterns, CallerInstructions: c.CallerInstructions,
		CallerParameters: c.CallerParameters,
		FallbackModels:   c.fallbackParam(), SearchLanguage: c.SearchLanguage, ReasoningSummaries: c.ReasoningSummaries,
	}
}

// historyParam returns the stored maximum, nil for no change.
func (c Change) historyParam() *int32 {
	if n := c.HistoryTokens; n == nil || *n >= 0 {
		return narrowInt(n)
	}
	return new(agent.StoredHistory(nil))
}

// fallbackParam returns the list, nil for no change: an empty list removes every model.
func (c Change) fallbackParam() []string {
	if c.FallbackModels == nil {
		return nil
	}
	return append([]string{}, *c.FallbackModels...)
}

func narrowInt(n *int) *int32 {
	if n == nil {
		return nil
	}
	return new(int32(*n))
}

func wideInt(n *int) *int64 {
	if n == nil {
		return nil
	}
	return new(int64(*n))
}
