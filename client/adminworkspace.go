package client

import (
	"context"
	"net/http"
	"time"
)

// Workspace is a workspace with its settings. Its instructions, model, MaxResponseSeconds, MaxTurns
// and HistoryTokens are those of its default agent.
type Workspace struct {
	Versioned
	ID           string  `json:"workspace_id"`
	Slug         string  `json:"slug"`
	Name         string  `json:"name"`
	Instructions string  `json:"instructions"`
	Model        *string `json:"model"` // nil: the server's

	MaxResponseSeconds int  `json:"max_response_seconds"`
	MaxTurns           int  `json:"max_turns"`
	MaxRunning         int  `json:"max_running"`
	HistoryTokens      *int `json:"history_tokens"`      // of earlier turns, for the model; nil: as many as fit its window
	MessagesPerMinute  *int `json:"messages_per_minute"` // of each key, like the next two; nil: the server's, 0: no limit
	CallsPerMinute     *int `json:"calls_per_minute"`
	OpenStreams        *int `json:"open_streams"`

	StorageQuota int64 `json:"storage_quota"` // bytes; 0: no limit

	SeparateApprover bool `json:"separate_approver"` // the key that sent a message cannot allow its calls
	AdminPatterns    bool `json:"admin_patterns"`    // decisions add no patterns to the allow-list

	CallerInstructions bool `json:"caller_instructions"` // messages may have instructions of the caller
	CallerParameters   bool `json:"caller_parameters"`   // messages may have parameters of the model

	FallbackModels     []string `json:"fallback_models"`     // answer in place of an agent's model that fails
	ReasoningSummaries bool     `json:"reasoning_summaries"` // summaries of the reasoning are events of streams

	SearchLanguage string `json:"search_language"` // of the documents, such as german

	Storage *Storage `json:"storage,omitempty"` // in lists

	PausedAt *time.Time `json:"paused_at"` // nil: its agents run
	PausedBy *string    `json:"paused_by"`

	CreatedAt time.Time `json:"created_at"`
	UpdatedAt time.Time `json:"updated_at"`

	// LogPosition is the position of the log of changes before this response; see Admin.Since.
	LogPosition string `json:"log_position,omitempty"`
}

// Storage is what a workspace stores, in bytes.
type Storage struct {
	Files     int64 `json:"files"`
	Folders   int64 `json:"folders"`
	Documents int64 `json:"documents"`
}

// WorkspaceChange lists the settings to change. A nil field stays unchanged.
type WorkspaceChange struct {
	Name         *string
	Instructions *string
	Model        *string // "": the server's

	MaxResponseSeconds *int
	MaxTurns           *int
	MaxRunning         *int
	HistoryTokens      *int // -1: as many as fit the model's window
	StorageQuota       *int64
	MessagesPerMinute  *int // -1: the server's, like the next two
	CallsPerMinute     *int
	OpenStreams        *int

	SeparateApprover *bool
	AdminPatterns    *bool

	CallerInstructions *bool
	CallerParameters   *bool

	FallbackModels     *[]string
	ReasoningSummaries *bool
	SearchLanguage     *string
}

func (c WorkspaceChange) body() object {
	o := make(object)
	put(o, "name", c.Name)
	put(o, "instructions", c.Instructions)
	put(o, "model", c.Model)
	put(o, "max_response_seconds", c.MaxResponseSeconds)
	put(o, "max_turns", c.MaxTurns)
	put(o, "max_running", c.MaxRunning)
	put(o, "storage_quota", c.StorageQuota)
	for name, limit := range map[string]*int{"history_tokens": c.HistoryTokens, "messages_per_minute": c.MessagesPerMinute,
		"calls_per_minute": c.CallsPerMinute, "open_streams": c.OpenStreams} {
		if put(o, name, limit); limit != nil && *limit == -1 {
			o[name] = nil
		}
	}
	put(o, "separate_approver", c.SeparateApprover)
	put(o, "admin_patterns", c.AdminPatterns)
	put(o, "caller_instructions", c.CallerInstructions)
	put(o, "caller_parameters", c.CallerParameters)
	put(o, "fallback_models", c.FallbackModels)
	put(o, "reasoning_summaries", c.ReasoningSummaries)
	put(o, "search_language", c.SearchLanguage)
	return o
}

// Workspace returns the workspace.
func (a Admin) Workspace(ctx context.Context) (Workspace, error) {
	return administer[Workspace](ctx, a, a.workspace(http.MethodGet, nil))
}

// UpdateWorkspace changes settings of the workspace.
func (a Admin) UpdateWorkspace(ctx context.Context, change WorkspaceChange, etag string) (Workspace, error) {
	return administer[Workspace](ctx, a, a.workspace(http.MethodPatch, change.body()).ifMatch(etag))
}

// PauseState is the state of the switch that stops agents.
type PauseState struct {
	PausedAt *time.Time `json:"paused_at"` // nil: the agents run
	PausedBy *string    `json:"paused_by"`
}

// Pause stops the agents of the workspace.
func (a Admin) Pause(ctx context.Context) (PauseState, error) {
	return administer[PauseState](ctx, a, a.workspace(http.MethodPost, nil, "pause"))
}

// Resume ends the pause of the workspace.
func (a Admin) Resume(ctx context.Context) (PauseState, error) {
	return administer[PauseState](ctx, a, a.workspace(http.MethodPost, nil, "resume"))
}

// WorkspaceLimits are the limits of a workspace with their present use.
type WorkspaceLimits struct {
	MaxRunning        int       `json:"max_running"`
	Turns             OpenTurns `json:"turns"`
	StorageQuota      int64     `json:"storage_quota"` // bytes; 0: no limit
	Storage           Storage   `json:"storage"`
	MessagesPerMinute int       `json:"messages_per_minute"` // of each key; 0: no limit
	CallsPerMinute    int       `json:"calls_per_minute"`
	OpenStreams       int       `json:"open_streams"`
	Budgets           []Budget  `json:"budgets"`
}

// OpenTurns counts the turns of a workspace that have not ended.
type OpenTurns struct {
	Running int `json:"running"`
	Waiting int `json:"waiting"` // for an approval or a secret
	Queued  int `json:"queued"`
	LinedUp int `json:"lined_up"` // behind another turn of their session
}

// Limits returns the limits of the workspace.
func (a Admin) Limits(ctx context.Context) (WorkspaceLimits, error) {
	return administer[WorkspaceLimits](ctx, a, a.workspace(http.MethodGet, nil, "limits"))
}

// Budget limits the use of a day. Kind is workspace, key or user.
type Budget struct {
	Kind       string      `json:"kind"`
	Subject    *string     `json:"subject"` // id of a key or name of a user; nil: the workspace, each key or each user
	MaxCostUSD *float64    `json:"max_cost_usd"`
	MaxTokens  *int64      `json:"max_tokens"`
	Used       *BudgetUsed `json:"used"` // nil: each key or each user has its own
	UpdatedAt  time.Time   `json:"updated_at"`
}

// BudgetUsed is the use of today.
type BudgetUsed struct {
	CostUSD float64 `json:"cost_usd"`
	Tokens  int64   `json:"tokens"`
}

// Budgets lists the budgets of the workspace.
func (a Admin) Budgets(ctx context.Context) ([]Budget, error) {
	return listAll[Budget](ctx, a, a.workspace(http.MethodGet, nil, "budgets"))
}

// PutBudget sets the budget of its kind and subject.
func (a Admin) PutBudget(ctx context.Context, b Budget) (Budget, error) {
	in := make(object)
	put(in, "subject", b.Subject)
	put(in, "max_cost_usd", b.MaxCostUSD)
	put(in, "max_tokens", b.MaxTokens)
	return administer[Budget](ctx, a, a.workspace(http.MethodPut, in, "budgets", b.Kind))
}

// DeleteBudget deletes a budget. An empty subject names the one of the workspace, of each key or of
// each user.
func (a Admin) DeleteBudget(ctx context.Context, kind, subject string) error {
	_, err := administer[object](ctx, a, a.workspace(http.MethodDelete, nil, "budgets", kind).with("subject", subject))
	return err
}

// ErasedContent is the result of EraseSession and EraseCaller.
type ErasedContent struct {
	SessionID string    `json:"session_id"`
	ErasedAt  time.Time `json:"erased_at"`
	Before    bool      `json:"erased_before"`
	Canceled  int       `json:"canceled_turns"`
}

// EraseSession erases the content of a session, and cancels its running turn.
func (a Admin) EraseSession(ctx context.Context, id string) (ErasedContent, error) {
	return administer[ErasedContent](ctx, a, a.workspace(http.MethodPost, object{"session_id": id}, "erasures"))
}

// EraseCaller is EraseSession for the session of a caller_id.
func (a Admin) EraseCaller(ctx context.Context, caller string) (ErasedContent, error) {
	return administer[ErasedContent](ctx, a, a.workspace(http.MethodPost, object{"caller_id": caller}, "erasures"))
}
