package admin

import (
	"context"
	"strconv"
	"time"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/store/workspace"
)

// workspaceView is a workspace in a response.
type workspaceView struct {
	ID           uuid.UUID `json:"workspace_id"`
	Slug         string    `json:"slug"`
	Name         string    `json:"name"`
	Instructions string    `json:"instructions"`
	Model        *string   `json:"model"` // null: the server's

	MaxResponseSeconds int   `json:"max_response_seconds"`
	MaxTurns           int   `json:"max_turns"`
	MaxRunning         int   `json:"max_running"`
	HistoryTokens      *int  `json:"history_tokens"` // null: as many as fit the model's window
	StorageQuota       int64 `json:"storage_quota"`

	MessagesPerMinute *int `json:"messages_per_minute"` // null: the server's
	CallsPerMinute    *int `json:"calls_per_minute"`
	OpenStreams       *int `json:"open_streams"`

	workspace.Pause // of this workspace; the server can be paused besides

	SeparateApprover   bool      `json:"separate_approver"`
	AdminPatterns      bool      `json:"admin_patterns"`
	CallerInstructions bool      `json:"caller_instructions"`
	CallerParameters   bool      `json:"caller_parameters"`
	FallbackModels     []string  `json:"fallback_models"`
	ReasoningSummaries bool      `json:"reasoning_summaries"`
	SearchLanguage     string    `json:"search_language"`
	CreatedAt          time.Time `json:"created_at"`
	UpdatedAt          time.Time `json:"updated_at"`

	Storage  *workspace.Storage `json:"storage,omitempty"`      // in lists
	Position string             `json:"log_position,omitempty"` // of the log of changes, before this response
}

func viewWorkspace(w workspace.Workspace) workspaceView {
	if w.Paused.At != nil {
		w.Paused.At = new(w.Paused.At.UTC())
	}
	return workspaceView{
		ID: w.ID, Slug: w.Slug, Name: w.Name, Instructions: w.Instructions, Model: w.Model,
		MaxResponseSeconds: w.MaxResponseSeconds, MaxTurns: w.MaxTurns, MaxRunning: w.MaxRunning, HistoryTokens: w.HistoryTokens,
		StorageQuota:      w.StorageQuota,
		MessagesPerMinute: w.MessagesPerMinute, CallsPerMinute: w.CallsPerMinute, OpenStreams: w.OpenStreams, Pause: w.Paused,
		SeparateApprover: w.SeparateApprover, AdminPatterns: w.AdminPatterns, CallerInstructions: w.CallerInstructions,
		CallerParameters: w.CallerParameters,
		FallbackModels:   append([]string{}, w.FallbackModels...), ReasoningSummaries: w.ReasoningSummaries, SearchLanguage: w.SearchLanguage,
		CreatedAt: w.CreatedAt.UTC(), UpdatedAt: w.UpdatedAt.UTC(),
	}
}

// tagWorkspace returns a workspace with its version: the time of its last change.
func tagWorkspace(w workspace.Workspace) tagged {
	return tagged{viewWorkspace(w), tagTime(w.UpdatedAt)}
}

func tagTime(t time.Time) string { return strconv.FormatInt(t.UnixMicro(), 36) }

var workspaceFields = []string{"name", "instructions", "model", "max_response_seconds", "max_turns", "max_running", "history_tokens",
	"storage_quota",
	"messages_per_minute", "calls_per_minute", "open_streams", "separate_approver", "admin_patterns", "caller_instructions",
	"caller_parameters", "fallback_models", "reasoning_summaries", "search_language"}

func (s *api) getWorkspace(ctx context.Context, c *call) (any, error) {
	position, err := s.Log.Position(ctx)
	if err != nil {
		return nil, err
	}
	w, err := s.Workspaces.Find(ctx, c.Caller.Workspace.ID.String())
	view := viewWorkspace(w)
	view.Position = position
	return tagged{view, tagTime(w.UpdatedAt)}, err
}

func (s *api) updateWorkspace(ctx context.Context, c *call) (any, error) {
	change := c.workspaceChange()
	change.Seen = c.expectedTime()
	if err := c.Err(); err != nil {
		return nil, err
	}
	if err := s.CheckModel(ctx, c.Caller.Workspace.ID, change); err != nil {
		return nil, err
	}
	if change.Model != nil {
		if err := s.Agents.AcceptModel(ctx, c.Caller.Workspace.ID, *change.Model); err != nil {
			return nil, err
		}
	}
	w, err := s.Workspaces.Update(ctx, c.Caller.Workspace.ID, change)
	return tagWorkspace(w), err
}

// workspaceChange parses a change. Null stands for the server's own model and limits, and for a history
// that is bounded by the model's window.
func (c *call) workspaceChange() workspace.Change {
	c.notNull("name", "instructions", "max_response_seconds", "max_turns", "max_running", "storage_quota", "separate_approver",
		"admin_patterns",
		"caller_instructions", "caller_parameters", "fallback_models", "reasoning_summaries", "search_language")
	const any = 1 << 50 // the store checks the bounds
	change := workspace.Change{
		Name: c.optionalText("name"), Instructions: c.optionalText("instructions"), Model: c.optionalText("model"),
		MaxResponseSeconds: c.optionalInt("max_response_seconds", 0, any), MaxTurns: c.optionalInt("max_turns", 0, any),
		MaxRunning: c.optionalInt("max_running", 0, any), HistoryTokens: c.optionalInt("history_tokens", 0, any),
		StorageQuota:      c.optionalInt("storage_quota", 0, any),
		MessagesPerMinute: c.optionalInt("messages_per_minute", 0, any), CallsPerMinute: c.optionalInt("calls_per_minute", 0, any),
		OpenStreams:      c.optionalInt("open_streams", 0, any),
		SeparateApprover: c.optionalBool("separate_approver"), AdminPatterns: c.optionalBool("admin_patterns"),
		CallerInstructions: c.optionalBool("caller_instructions"), CallerParameters: c.optionalBool("caller_parameters"),
		ReasoningSummaries: c.optionalBool("reasoning_summaries"), SearchLanguage: c.optionalText("search_language"),
	}
	if c.body.Has("fallback_models") {
		change.FallbackModels = new(append([]string{}, c.body.Strings("fallback_models", workspace.MaxFallbacks)...))
	}
	if c.nulls["model"] {
		change.Model = new("")
	}
	for name, limit := range map[string]**int{"history_tokens": &change.HistoryTokens, "messages_per_minute": &change.MessagesPerMinute,
		"calls_per_minute": &change.CallsPerMinute, "open_streams": &change.OpenStreams} {
		if c.nulls[name] {
			*limit = new(-1)
		}
	}
	return change
}
