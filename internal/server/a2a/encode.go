package a2a

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
	textType = "text/plain"
	jsonType = "application/json"
)

// The objects of the protocol in version 1.0. Version 0.3 is derived from them.
type (
	task struct {
		ID        uuid.UUID      `json:"id"`
		ContextID uuid.UUID      `json:"contextId"`
		Status    status         `json:"status"`
		Artifacts []artifact     `json:"artifacts,omitzero"` // an empty list is encoded
		History   []message      `json:"history,omitempty"`
		Metadata  map[string]any `json:"metadata,omitempty"`
	}
	status struct {
		State     state    `json:"state"`
		Message   *message `json:"message,omitempty"`
		Timestamp stamp    `json:"timestamp"`
	}
	message struct {
		MessageID string         `json:"messageId"`
		ContextID uuid.UUID      `json:"contextId"`
		TaskID    uuid.UUID      `json:"taskId"`
		Role      role           `json:"role"`
		Parts     []part         `json:"parts"`
		Metadata  map[string]any `json:"metadata,omitempty"`
	}
	part struct {
		Text      *string         `json:"text,omitempty"`
		URL       string          `json:"url,omitempty"`
		Data      json.RawMessage `json:"data,omitempty"`
		Filename  string          `json:"filename,omitempty"`
		MediaType string          `json:"mediaType,omitempty"`
		Metadata  map[string]any  `json:"metadata,omitempty"`
	}
	artifact struct {
		ArtifactID string `json:"artifactId"`
		Name       string `json:"name,omitempty"`
		Parts      []part `json:"parts"`
	}
	statusUpdate struct {
		TaskID    uuid.UUID      `json:"taskId"`
		ContextID uuid.UUID      `json:"contextId"`
		Status    status         `json:"status"`
		Metadata  map[string]any `json:"metadata,omitempty"`
	}
	artifactUpdate struct {
		TaskID    uuid.UUID `json:"taskId"`
		ContextID uuid.UUID `json:"contextId"`
		Artifact  artifact  `json:"artifact"`
		Append    bool      `json:"append,omitempty"`
		LastChunk bool      `json:"lastChunk,omitempty"`
	}
	// update is the content of a frame: one of these.
	update struct {
		Task           *task           `json:"task,omitempty"`
		StatusUpdate   *statusUpdate   `json:"statusUpdate,omitempty"`
		ArtifactUpdate *artifactUpdate `json:"artifactUpdate,omitempty"`
	}
)

// The artifacts of a task.
const (
	answerID = "answer" // the agent's answer
	resultID = "result" // the answer in the caller's schema
	filesID  = "files"  // files that the agent produced
)

// state is the state of a task.
type state string

const (
	submitted     state = "TASK_STATE_SUBMITTED"
	working       state = "TASK_STATE_WORKING"
	inputRequired state = "TASK_STATE_INPUT_REQUIRED"
	completed     state = "TASK_STATE_COMPLETED"
	failed        state = "TASK_STATE_FAILED"
	canceled      state = "TASK_STATE_CANCELED"
)

// terminal reports whether the task has ended.
func (s state) terminal() bool { return s == completed || s == failed || s == canceled }

// rests reports whether no event follows until an answer arrives, or none at all.
func (s state) rests() bool { return s == inputRequired || s.terminal() }

// stateOf returns the state of a task by that of its turn. A turn that ran before and is queued
// again, after an answer or a crash, is shown as working.
func stateOf(t session.Turn) state {
	switch session.State(t.State) {
	case session.LinedUp:
		return submitted
	case session.Queued:
		if t.Epoch == 0 {
			return submitted
		}
		return working
	case session.Waiting:
		return inputRequired
	case session.Completed:
		return completed
	case session.Failed:
		return failed
	case session.Canceled:
		return canceled
	}
	return working
}

type role string

const (
	user  role = "ROLE_USER"
	agent role = "ROLE_AGENT"
)

// stamp is a time in the protocol's format.
type stamp time.Time

// MarshalJSON implements json.Marshaler.
func (s stamp) MarshalJSON() ([]byte, error) {
	return []byte(time.Time(s).UTC().Format(`"2006-01-02T15:04:05.000Z"`)), nil
}

func textPart(text string) part { return part{Text: &text} }

func dataPart(data json.RawMessage) part { return part{Data: data, MediaType: jsonType} }

// fileParts returns files by their signed URLs, which need no key.
func fileParts(base string, files []event.File) []part {
	parts := make([]part, len(files))
	for i, f := range files {
		parts[i] = part{URL: server.AbsoluteURL(base, f.DownloadURL), Filename: f.Filename, MediaType: f.MIME, Metadata: map[string]any{"size": f.Size}}
	}
	return parts
}

// agentMessage returns the agent's message about an event. Its id depends on the event alone.
func agentMessage(t *task, seq int64, parts ...part) *message {
	id := uuid.NewSHA1(t.ID, strconv.AppendInt(nil, seq, 10)).String()
	return &message{MessageID: id, ContextID: t.ContextID, TaskID: t.ID, Role: agent, Parts: parts}
}
