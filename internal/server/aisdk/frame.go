package aisdk

import (
	"encoding/json"
	"time"

	"github.com/google/uuid"
)

// frame is a chunk of the protocol; which members it has depends on Type.
type frame struct {
	Type             string          `json:"type"`
	ID               string          `json:"id,omitempty"`
	MessageID        string          `json:"messageId,omitempty"`
	Delta            string          `json:"delta,omitempty"`
	ToolCallID       string          `json:"toolCallId,omitempty"`
	ToolName         string          `json:"toolName,omitempty"`
	Title            string          `json:"title,omitempty"`
	Input            json.RawMessage `json:"input,omitempty"`
	Output           any             `json:"output,omitempty"` // a text, also an empty one, or JSON
	ApprovalID       string          `json:"approvalId,omitempty"`
	ErrorText        string          `json:"errorText,omitempty"`
	ProviderExecuted bool            `json:"providerExecuted,omitempty"` // set here: the client must not run it
	Dynamic          bool            `json:"dynamic,omitempty"`          // the client need not declare the tool
	Data             any             `json:"data,omitempty"`
	Reason           string          `json:"reason,omitempty"`
	FinishReason     string          `json:"finishReason,omitempty"`
	Metadata         any             `json:"messageMetadata,omitempty"`
}

// metadata is the metadata of a message.
type metadata struct {
	SessionID uuid.UUID `json:"session_id"`
	TurnID    uuid.UUID `json:"turn_id"`
}

// secretRequest is the data of a part that requests a secret.
type secretRequest struct {
	ApprovalID uuid.UUID `json:"approval_id"`
	KeyName    string    `json:"key_name"`
	Reason     string    `json:"reason,omitempty"`
	SecretURL  string    `json:"secret_url"`
	ExpiresAt  time.Time `json:"expires_at"`
	Status     string    `json:"status"` // pending, provided, skipped or expired
}
