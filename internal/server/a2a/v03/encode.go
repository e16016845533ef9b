// Package v03 encodes the objects of A2A 1.0 in version 0.3 of the protocol, from which they differ
// in names and in nesting.
package v03

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/server/a2a/task"
	"github.com/parley-server/parley/internal/store/callback"
)

// The objects that differ.
type (
	taskObject struct {
		Kind      string          `json:"kind"`
		ID        uuid.UUID       `json:"id"`
		ContextID string          `json:"contextId"`
		Status    status          `json:"status"`
		Artifacts []artifact      `json:"artifacts,omitzero"`
		History   []messageObject `json:"history,omitempty"`
		Metadata  map[string]any  `json:"metadata,omitempty"`
	}
	status struct {
		State     string         `json:"state"`
		Message   *messageObject `json:"message,omitempty"`
		Timestamp task.Stamp     `json:"timestamp"`
	}
	messageObject struct {
		Kind      string         `json:"kind"`
		MessageID string         `json:"messageId"`
		ContextID string         `json:"contextId"`
		TaskID    uuid.UUID      `json:"taskId"`
		Role      string         `json:"role"`
		Parts     []part         `json:"parts"`
		Metadata  map[string]any `json:"metadata,omitempty"`
	}
	part struct {
		Kind     string          `json:"kind"`
		Text     *string         `json:"text,omitempty"`
		Data     json.RawMessage `json:"data,omitempty"`
		File     *file           `json:"file,omitempty"`
		Metadata map[string]any  `json:"metadata,omitempty"`
	}
	file struct {
		Name     string `json:"name,omitempty"`
		MIMEType string `json:"mimeType,omitempty"`
		URI      string `json:"uri"`
	}
	artifact struct {
		ArtifactID string `json:"artifactId"`
		Name       string `json:"name,omitempty"`
		Parts      []part `json:"parts"`
	}
	statusUpdate struct {
		Kind      string         `json:"kind"`
		TaskID    uuid.UUID      `json:"taskId"`
		ContextID string         `json:"contextId"`
		Status    status         `json:"status"`
		Final     bool           `json:"final"`
		Metadata  map[string]any `json:"metadata,omitempty"`
	}
	artifactUpdate struct {
		Kind      string    `json:"kind"`
		TaskID    uuid.UUID `json:"taskId"`
		ContextID string    `json:"contextId"`
		Artifact  artifact  `json:"artifact"`
		Append    bool      `json:"append,omitempty"`
		LastChunk bool      `json:"lastChunk,omitempty"`
	}
)

// stateOf returns the name of a state.
func stateOf(s task.State) string {
	return strings.ReplaceAll(strings.ToLower(strings.TrimPrefix(string(s), "TASK_STATE_")), "_", "-")
}

func taskOf(t *task.Task) taskObject {
	o := taskObject{Kind: "task", ID: t.ID, ContextID: t.ContextID, Status: statusOf(t.Status), Metadata: t.Metadata}
	if t.Artifacts != nil {
		o.Artifacts = []artifact{}
	}
	for _, a := range t.Artifacts {
		o.Artifacts = append(o.Artifacts, artifactOf(a))
	}
	for i := range t.History {
		o.History = append(o.History, *messageOf(&t.History[i]))
	}
	return o
}

func statusOf(s task.Status) status {
	return status{State: stateOf(s.State), Message: messageOf(s.Message), Timestamp: s.Timestamp}
}

func messageOf(m *task.Message) *messageObject {
	if m == nil {
		return nil
	}
	return &messageObject{Kind: "message", MessageID: m.MessageID, ContextID: m.ContextID, TaskID: m.TaskID,
		Role: strings.ToLower(strings.TrimPrefix(string(m.Role), "ROLE_")), Parts: partsOf(m.Parts), Metadata: m.Metadata}
}

func artifactOf(a task.Artifact) artifact {
	return artifact{ArtifactID: a.ArtifactID, Name: a.Name, Parts: partsOf(a.Parts)}
}

func partsOf(parts []task.Part) []part {
	list := make([]part, len(parts))
	for i, p := range parts {
		switch {
		case p.Text != nil:
			list[i] = part{Kind: "text", Text: p.Text, Metadata: p.Metadata}
		case p.URL != "":
			list[i] = part{Kind: "file", File: &file{p.Filename, p.MediaType, p.URL}, Metadata: p.Metadata}
		default: // there, data are always an object
			data := p.Data
			if !bytes.HasPrefix(data, []byte("{")) {
				data = bytes.Join([][]byte{[]byte(`{"value":`), data, []byte("}")}, nil)
			}
			list[i] = part{Kind: "data", Data: data, Metadata: p.Metadata}
		}
	}
	return list
}

// Encoding encodes the objects of version 1.0 in version 0.3.
type Encoding struct{}

// Frame implements task.Encoding.
func (e Encoding) Frame(f task.Frame) any {
	switch {
	case f.Task != nil:
		return taskOf(f.Task)
	case f.StatusUpdate != nil:
		s := f.StatusUpdate
		return statusUpdate{"status-update", s.TaskID, s.ContextID, statusOf(s.Status), e.Ends(f), s.Metadata}
	}
	a := f.ArtifactUpdate
	return artifactUpdate{"artifact-update", a.TaskID, a.ContextID, artifactOf(a.Artifact), a.Append, a.LastChunk}
}

// Task implements task.Encoding.
func (Encoding) Task(t *task.Task) any { return taskOf(t) }

// Sent implements task.Encoding.
func (Encoding) Sent(t *task.Task) any { return taskOf(t) }

// State implements task.Encoding.
func (Encoding) State(s task.State) string { return stateOf(s) }

// Ends implements task.Encoding. A stream also ends when the task waits: clients read to the end
// before they answer.
func (Encoding) Ends(f task.Frame) bool {
	return f.StatusUpdate != nil && (f.StatusUpdate.Status.State.IsTerminal() || f.Waits)
}

// Leaves implements task.Encoding.
func (Encoding) Leaves(s task.State) bool { return s == task.InputRequired }

// Receiver implements task.Encoding.
func (Encoding) Receiver(of uuid.UUID, n callback.Named) any {
	c := receiver{of, config{ID: n.Name, URL: n.URL}}
	if n.Scheme != "" {
		c.Config.Authentication = &authentication{[]string{n.Scheme}}
	}
	return c
}

// The objects of a receiver of a task's updates.
type (
	receiver struct {
		TaskID uuid.UUID `json:"taskId"`
		Config config    `json:"pushNotificationConfig"`
	}
	config struct {
		ID             string          `json:"id"`
		URL            string          `json:"url"`
		Authentication *authentication `json:"authentication,omitempty"`
	}
	authentication struct {
		Schemes []string `json:"schemes"`
	}
)
