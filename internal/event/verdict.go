package event

import "github.com/google/uuid"

// ToolVerdict records the decision about a tool call. It is committed with the call's ToolUse,
// before the tool runs.
type ToolVerdict struct {
	ToolUseID  string    `json:"tool_use_id"`
	Verdict    Outcome   `json:"verdict"` // Allowed or Denied
	Source     Source    `json:"source"`
	Pattern    string    `json:"pattern,omitempty"`    // SourcePattern: the pattern of the allow-list
	ApprovalID uuid.UUID `json:"approval_id,omitzero"` // SourceApproval: the question
}

// Source is what decided about a tool call.
type Source string

const (
	SourceBuiltIn  Source = "built_in" // the built-in rule of the tool
	SourceLabel    Source = "label"    // the label of a tool of the workspace's own
	SourceRule     Source = "rule"     // a rule of the workspace or of the agent
	SourcePattern  Source = "pattern"  // a pattern of the allow-list
	SourceApproval Source = "approval" // an answer, or the lack of one
)
