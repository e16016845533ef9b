package task

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/session"
	"github.com/parley-server/parley/internal/store/filestore"
)

// Shape is the extent to which a caller wants to see a task.
type Shape struct {
	Modes     Modes
	History   int // messages; negative: all
	Artifacts bool
}

// Whole is the complete task.
var Whole = Shape{Modes: Modes{true, true}, History: -1, Artifacts: true}

// Of returns the task of a turn, as far as its rows describe it.
func Of(base string, v session.View, files filestore.Files, s Shape) *Task {
	t := &Task{ID: v.Turn.ID, ContextID: ContextOf(v), Status: Status{State: StateOf(v.Turn), Timestamp: Stamp(v.Turn.StateAt)},
		Metadata: metadataOf(v)}
	t.History = History(base, v, files.In, s.History)
	switch {
	case v.Question != nil:
		t.Status.Message = readQuestion(base, t, v.Question)
	case v.Turn.Error != nil && v.Turn.EndSeq != nil:
		t.Status.Message = agentMessage(t, *v.Turn.EndSeq, textPart(cmp.Or(v.Answer.Failure,
			fmt.Sprintf("The task has ended with the error %s.", *v.Turn.Error))))
	}
	if s.Artifacts {
		t.Artifacts = artifactsOf(base, v, files.Out, s.Modes)
	}
	return t
}

func artifactsOf(base string, v session.View, files []event.File, m Modes) []Artifact {
	list := []Artifact{}
	if text := v.Answer.Output; text != nil && *text != "" && m.Text {
		list = append(list, Artifact{answerID, answerID, []Part{textPart(*text)}})
	}
	if v.Answer.StructuredResult != nil {
		list = append(list, Artifact{resultID, resultID, []Part{m.resultPart(v.Answer.StructuredResult)}})
	}
	if len(files) > 0 {
		list = append(list, Artifact{filesID, filesID, fileParts(base, files)})
	}
	return list
}

// History returns the messages of a task: its first message, with its sender's id and its files.
// The agent's text is in the artifacts.
func History(base string, v session.View, files []event.File, most int) []Message {
	text := v.Asked.Content
	if text == nil || most == 0 {
		return nil
	}
	return []Message{{MessageID: cmp.Or(v.Asked.Named, v.Asked.MessageID.String()), ContextID: ContextOf(v), TaskID: v.Turn.ID, Role: user,
		Parts: append([]Part{textPart(*text)}, fileParts(base, files)...)}}
}

func metadataOf(v session.View) map[string]any {
	m := make(map[string]any)
	for name, raw := range map[string]json.RawMessage{"usage": v.Answer.Usage, "references": v.Answer.References,
		"rejected_attachments": v.Turn.Rejected} {
		if raw != nil {
			m[name] = raw
		}
	}
	if v.Turn.Error != nil {
		m["error"] = map[string]any{"code": *v.Turn.Error, "recoverable": event.Code(*v.Turn.Error).Recoverable()}
	}
	if len(m) == 0 {
		return nil
	}
	return m
}

// Modes are the media types that a caller accepts.
type Modes struct{ Text, JSON bool }

// resultPart returns a structured answer as a part.
func (m Modes) resultPart(raw json.RawMessage) Part {
	if m.JSON {
		return dataPart(raw)
	}
	return Part{Text: new(string(raw)), MediaType: TextType}
}

// clientContext begins the caller id of a session whose context a client has named.
const clientContext = "a2a:"

// ClientContext returns the caller id of the session of a context that a client with this key has
// named.
func ClientContext(key, name string) string { return clientContext + key + ":" + name }

// ContextOf returns the id of a task's context: the session, or the name that a client gave it.
func ContextOf(v session.View) string {
	if rest, ok := strings.CutPrefix(v.CallerID, clientContext); ok {
		if _, name, ok := strings.Cut(rest, ":"); ok {
			return name
		}
	}
	return v.Turn.SessionID.String()
}
