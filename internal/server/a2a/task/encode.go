// Package task has the objects of A2A 1.0 and the projection of a turn to them: to the frames of a
// stream, and to the task that they lead to. Encoding writes them in a version of the protocol.
package task

import (
	"encoding/json"
	"strconv"
	"time"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/server"
	"github.com/parley-server/parley/internal/session"
)

const (
	TextType = "text/plain"
	JSONType = "application/json"
)

// The objects of the protocol in version 1.0, from which those of version 0.3 are derived.
type (
	Task struct {
		ID        uuid.UUID      `json:"id"`
		ContextID string         `json:"contextId"`
		Status    Status         `json:"status"`
		Artifacts []Artifact     `json:"artifacts,omitzero"` // an empty list is encoded
		History   []Message      `json:"history,omitempty"`
		Metadata  map[string]any `json:"metadata,omitempty"`
	}
	Status struct {
		State     State    `json:"state"`
		Message   *Message `json:"message,omitempty"`
		Timestamp Stamp    `json:"timestamp"`
	}
	Message struct {
		MessageID string         `json:"messageId"`
		ContextID string         `json:"contextId"`
		TaskID    uuid.UUID      `json:"taskId"`
		Role      Role           `json:"role"`
		Parts     []Part         `json:"parts"`
		Metadata  map[string]any `json:"metadata,omitempty"`
	}
	Part struct {
		Text      *string         `json:"text,omitempty"`
		URL       string          `json:"url,omitempty"`
		Data      json.RawMessage `json:"data,omitempty"`
		Filename  string          `json:"filename,omitempty"`
		MediaType string          `json:"mediaType,omitempty"`
		Metadata  map[string]any  `json:"metadata,omitempty"`
	}
	Artifact struct {
		ArtifactID string `json:"artifactId"`
		Name       string `json:"name,omitempty"`
		Parts      []Part `json:"parts"`
	}
	StatusUpdate struct {
		TaskID    uuid.UUID      `json:"taskId"`
		ContextID string         `json:"contextId"`
		Status    Status         `json:"status"`
		Metadata  map[string]any `json:"metadata,omitempty"`
	}
	ArtifactUpdate struct {
		TaskID    uuid.UUID `json:"taskId"`
		ContextID string    `json:"contextId"`
		Artifact  Artifact  `json:"artifact"`
		Append    bool      `json:"append,omitempty"`
		LastChunk bool      `json:"lastChunk,omitempty"`
	}
	// Update is the content of a frame: one of these.
	Update struct {
		Task           *Task           `json:"task,omitempty"`
		StatusUpdate   *StatusUpdate   `json:"statusUpdate,omitempty"`
		ArtifactUpdate *ArtifactUpdate `json:"artifactUpdate,omitempty"`
	}
)

// The artifacts of a task.
const (
	answerID = "answer" // the agent's answer
	resultID = "result" // the answer in the caller's schema
	filesID  = "files"  // files that the agent produced
)

// State is the state of a task.
type State string

const (
	Submitted     State = "TASK_STATE_SUBMITTED"
	Working       State = "TASK_STATE_WORKING"
	InputRequired State = "TASK_STATE_INPUT_REQUIRED"
	Completed     State = "TASK_STATE_COMPLETED"
	Failed        State = "TASK_STATE_FAILED"
	Canceled      State = "TASK_STATE_CANCELED"
)

// IsTerminal reports whether the task has ended.
func (s State) IsTerminal() bool { return s == Completed || s == Failed || s == Canceled }

// Rests reports whether no event follows until an answer arrives, or none at all.
func (s State) Rests() bool { return s == InputRequired || s.IsTerminal() }

// StateOf returns the state of a task by that of its turn. A turn that ran before and is queued
// again, after an answer or a crash, is shown as working.
func StateOf(t session.Turn) State {
	switch session.State(t.State) {
	case session.LinedUp:
		return Submitted
	case session.Queued:
		if t.Epoch == 0 {
			return Submitted
		}
		return Working
	case session.Waiting:
		return InputRequired
	case session.Completed:
		return Completed
	case session.Failed:
		return Failed
	case session.Canceled:
		return Canceled
	}
	return Working
}

type Role string

const (
	user  Role = "ROLE_USER"
	agent Role = "ROLE_AGENT"
)

// Stamp is a time in the protocol's format.
type Stamp time.Time

// MarshalJSON implements json.Marshaler.
func (s Stamp) MarshalJSON() ([]byte, error) {
	return []byte(time.Time(s).UTC().Format(`"2006-01-02T15:04:05.000Z"`)), nil
}

func textPart(text string) Part { return Part{Text: &text} }

func dataPart(data json.RawMessage) Part { return Part{Data: data, MediaType: JSONType} }

// fileParts returns files by their signed URLs, which need no key.
func fileParts(base string, files []event.File) []Part {
	parts := make([]Part, len(files))
	for i, f := range files {
		parts[i] = Part{URL: server.AbsoluteURL(base, f.DownloadURL), Filename: f.Filename, MediaType: f.MIME,
			Metadata: map[string]any{"size": f.Size}}
	}
	return parts
}

// agentMessage returns the agent's message about an event. Its id depends on the event alone.
func agentMessage(t *Task, seq int64, parts ...Part) *Message {
	id := uuid.NewSHA1(t.ID, strconv.AppendInt(nil, seq, 10)).String()
	return &Message{MessageID: id, ContextID: t.ContextID, TaskID: t.ID, Role: agent, Parts: parts}
}
