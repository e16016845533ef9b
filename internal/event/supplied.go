package event

// Supplied holds what the caller sent with a message as its context. It is the caller's claim: it
// decides nothing.
type Supplied struct {
	// Instructions apply to this turn, after those of the workspace.
	Instructions string `json:"instructions,omitempty"`
	// Messages are the conversation before a session that begins with this turn, oldest first.
	Messages []SuppliedMessage `json:"messages,omitempty"`
}

// SuppliedMessage is an earlier message as the caller reports it.
type SuppliedMessage struct {
	Role   string     `json:"role"` // user, assistant or tool
	Text   string     `json:"text,omitempty"`
	Calls  []ToolCall `json:"calls,omitempty"`   // assistant: calls of the caller's tools
	CallID string     `json:"call_id,omitempty"` // tool: the call whose result this is
}

// Kind implements Body.
func (Supplied) Kind() Kind { return KindSupplied }
