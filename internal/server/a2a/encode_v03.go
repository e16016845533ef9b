package a2a

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/google/uuid"
)

// The objects of version 0.3 that differ.
type (
	oldTask struct {
		Kind      string         `json:"kind"`
		ID        uuid.UUID      `json:"id"`
		ContextID uuid.UUID      `json:"contextId"`
		Status    oldStatus      `json:"status"`
		Artifacts []oldArtifact  `json:"artifacts,omitzero"`
		History   []oldMessage   `json:"history,omitempty"`
		Metadata  map[string]any `json:"metadata,omitempty"`
	}
	oldStatus struct {
		State     string      `json:"state"`
		Message   *oldMessage `json:"message,omitempty"`
		Timestamp stamp       `json:"timestamp"`
	}
	oldMessage struct {
		Kind      string         `json:"kind"`
		MessageID string         `json:"messageId"`
		ContextID uuid.UUID      `json:"contextId"`
		TaskID    uuid.UUID      `json:"taskId"`
		Role      string         `json:"role"`
		Parts     []oldPart      `json:"parts"`
		Metadata  map[string]any `json:"metadata,omitempty"`
	}
	oldPart struct {
		Kind     string          `json:"kind"`
		Text     *string         `json:"text,omitempty"`
		Data     json.RawMessage `json:"data,omitempty"`
		File     *oldFile        `json:"file,omitempty"`
		Metadata map[string]any  `json:"metadata,omitempty"`
	}
	oldFile struct {
		Name     string `json:"name,omitempty"`
		MIMEType string `json:"mimeType,omitempty"`
		URI      string `json:"uri"`
	}
	oldArtifact struct {
		ArtifactID string    `json:"artifactId"`
		Name       string    `json:"name,omitempty"`
		Parts      []oldPart `json:"parts"`
	}
	oldStatusUpdate struct {
		Kind      string         `json:"kind"`
		TaskID    uuid.UUID      `json:"taskId"`
		ContextID uuid.UUID      `json:"contextId"`
		Status    oldStatus      `json:"status"`
		Final     bool           `json:"final"`
		Metadata  map[string]any `json:"metadata,omitempty"`
	}
	oldArtifactUpdate struct {
		Kind      string      `json:"kind"`
		TaskID    uuid.UUID   `json:"taskId"`
		ContextID uuid.UUID   `json:"contextId"`
		Artifact  oldArtifact `json:"artifact"`
		Append    bool        `json:"append,omitempty"`
		LastChunk bool        `json:"lastChunk,omitempty"`
	}
)

// old returns the name of a state in version 0.3.
func (s state) old() string {
	return strings.ReplaceAll(strings.ToLower(strings.TrimPrefix(string(s), "TASK_STATE_")), "_", "-")
}

func (t *task) old() oldTask {
	o := oldTask{Kind: "task", ID: t.ID, ContextID: t.ContextID, Status: t.Status.old(), Metadata: t.Metadata}
	if t.Artifacts != nil {
		o.Artifacts = []oldArtifact{}
	}
	for _, a := range t.Artifacts {
		o.Artifacts = append(o.Artifacts, a.old())
	}
	for i := range t.History {
		o.History = append(o.History, *t.History[i].old())
	}
	return o
}

func (s status) old() oldStatus {
	return oldStatus{State: s.State.old(), Message: s.Message.old(), Timestamp: s.Timestamp}
}

func (m *message) old() *oldMessage {
	if m == nil {
		return nil
	}
	return &oldMessage{Kind: "message", MessageID: m.MessageID, ContextID: m.ContextID, TaskID: m.TaskID,
		Role: strings.ToLower(strings.TrimPrefix(string(m.Role), "ROLE_")), Parts: oldParts(m.Parts), Metadata: m.Metadata}
}

func (a artifact) old() oldArtifact {
	return oldArtifact{ArtifactID: a.ArtifactID, Name: a.Name, Parts: oldParts(a.Parts)}
}

func oldParts(parts []part) []oldPart {
	list := make([]oldPart, len(parts))
	for i, p := range parts {
		switch {
		case p.Text != nil:
			list[i] = oldPart{Kind: "text", Text: p.Text, Metadata: p.Metadata}
		case p.URL != "":
			list[i] = oldPart{Kind: "file", File: &oldFile{p.Filename, p.MediaType, p.URL}, Metadata: p.Metadata}
		default: // there, data are always an object
			data := p.Data
			if !bytes.HasPrefix(data, []byte("{")) {
				data = bytes.Join([][]byte{[]byte(`{"value":`), data, []byte("}")}, nil)
			}
			list[i] = oldPart{Kind: "data", Data: data, Metadata: p.Metadata}
		}
	}
	return list
}

// old returns a frame of version 0.3.
func (f frame) old() any {
	switch {
	case f.Task != nil:
		return f.Task.old()
	case f.StatusUpdate != nil:
		s := f.StatusUpdate
		return oldStatusUpdate{"status-update", s.TaskID, s.ContextID, s.Status.old(), v03.ends(f), s.Metadata}
	}
	a := f.ArtifactUpdate
	return oldArtifactUpdate{"artifact-update", a.TaskID, a.ContextID, a.Artifact.old(), a.Append, a.LastChunk}
}

// ends reports whether a stream ends with a frame. In version 0.3 it also ends when the task
// waits: its clients read to the end before they answer.
func (v version) ends(f frame) bool {
	return f.StatusUpdate != nil && (f.StatusUpdate.Status.State.terminal() || v == v03 && f.waits)
}

// leaves reports whether a stream ends in a state that is not terminal.
func (v version) leaves(s state) bool { return v == v03 && s == inputRequired }

// frame encodes a frame in a version.
func (v version) frame(f frame) any {
	if v == v03 {
		return f.old()
	}
	return f.update
}

// state returns the name of a state in a version.
func (v version) state(s state) string {
	if v == v03 {
		return s.old()
	}
	return string(s)
}

// sent encodes a task as the response to a message.
func (v version) sent(t *task) any {
	if v == v03 {
		return t.old()
	}
	return update{Task: t}
}

// task encodes a task as the response to a request for it.
func (v version) task(t *task) any {
	if v == v03 {
		return t.old()
	}
	return t
}
