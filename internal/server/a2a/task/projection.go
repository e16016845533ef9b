package task

import (
	"strings"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/event"
)

// Frame is one frame of a stream. If one event makes several frames, only the last has an id: a
// reader that resumes with it has received them all.
type Frame struct {
	Update
	ID    int64 // 0: none
	Waits bool  // the task now waits for an answer that is not known yet
}

// Projection turns the events of a turn into frames, and into the resulting task. It depends on
// nothing else, so every reader of a turn gets the same frames.
type Projection struct {
	base   string // the base address of links
	modes  Modes
	task   Task
	answer []byte // the text of the newest step with text; nil: none
	begins bool   // the next text is the first of its step
	fail   *event.Error
}

// NewProjection begins a projection before the first event of a turn.
func NewProjection(base string, m Modes, context string, id uuid.UUID, history []Message) *Projection {
	return &Projection{base: base, modes: m, task: Task{ID: id, ContextID: context, History: history}}
}

// Apply applies the next event of the turn.
func (p *Projection) Apply(ev event.Event) ([]Frame, error) {
	body, err := ev.Body()
	if err != nil {
		return nil, err
	}
	switch b := body.(type) {
	case event.Open:
		p.task.Status = Status{State: Submitted, Timestamp: Stamp(ev.At)}
		return []Frame{{Update{Task: p.Snapshot()}, ev.Seq, false}}, nil
	case event.Started:
		if p.task.Status.State == Working { // another worker has taken over
			return nil, nil
		}
		return p.statusFrames(ev, Working, nil), nil
	case event.Decision:
		return p.statusFrames(ev, Working, nil), nil
	case event.Text:
		if !p.modes.Text {
			return nil, nil
		}
		return p.textFrames(ev, b.Text, false), nil
	case event.Reply:
		p.begins = true
	case event.ToolUse:
		return p.toolFrames(ev, b.Tool+": "+b.Summary), nil
	case event.ToolResult:
		return p.toolFrames(ev, ""), nil
	case event.InputRequired:
		return p.statusFrames(ev, InputRequired, questionMessage(p.base, &p.task, b)), nil
	case event.ConnectRequired:
		return p.statusFrames(ev, InputRequired, connectMessage(p.base, &p.task, b)), nil
	case event.ToolRequired:
		return p.statusFrames(ev, InputRequired, callsMessage(p.base, &p.task, b)), nil
	case event.AttachmentRejected:
		p.addMetadata("rejected_attachments", b.Attachments)
	case event.Usage:
		p.addMetadata("usage", publicData(ev.Data))
	case event.Structured:
		return p.artifactFrames(ev, Artifact{resultID, resultID, []Part{p.modes.resultPart(b.Result)}}), nil
	case event.Attachment:
		return p.artifactFrames(ev, Artifact{filesID, filesID, fileParts(p.base, b.Attachments)}), nil
	case event.Error:
		p.fail = &b
	case event.Done:
		return p.doneFrames(ev), nil
	}
	return nil, nil
}

// Snapshot returns the current task.
func (p *Projection) Snapshot() *Task {
	t := p.task
	t.Artifacts = append([]Artifact(nil), p.task.Artifacts...)
	if p.answer != nil {
		t.Artifacts = append([]Artifact{{answerID, answerID, []Part{textPart(string(p.answer))}}}, t.Artifacts...)
	}
	return &t
}

// State returns the current state of the task.
func (p *Projection) State() State { return p.task.Status.State }

// Now returns the task's present state for a reader that has all frames up to id.
func (p *Projection) Now(id int64) Frame {
	return Frame{Update{StatusUpdate: &StatusUpdate{TaskID: p.task.ID, ContextID: p.task.ContextID, Status: p.task.Status}}, id, true}
}

// statusFrames changes the state of the task.
func (p *Projection) statusFrames(ev event.Event, s State, m *Message) []Frame {
	p.task.Status = Status{State: s, Message: m, Timestamp: Stamp(ev.At)}
	return []Frame{{Update{StatusUpdate: &StatusUpdate{TaskID: p.task.ID, ContextID: p.task.ContextID, Status: p.task.Status}}, ev.Seq,
		s == InputRequired}}
}

// textFrames adds a piece of the answer, or its end. The answer is the text of the last step: the
// first piece of a step replaces the text of earlier steps.
func (p *Projection) textFrames(ev event.Event, text string, last bool) []Frame {
	if p.begins && text != "" && !last {
		p.begins, p.answer, text = false, nil, strings.TrimPrefix(text, event.StepBreak)
	}
	piece := Artifact{answerID, answerID, []Part{textPart(text)}}
	more := p.answer != nil
	p.answer = append(p.answer, text...)
	if p.answer == nil {
		p.answer = []byte{}
	}
	return []Frame{{Update{ArtifactUpdate: &ArtifactUpdate{p.task.ID, p.task.ContextID, piece, more, last}}, ev.Seq, false}}
}

// artifactFrames adds an artifact in one piece.
func (p *Projection) artifactFrames(ev event.Event, a Artifact) []Frame {
	p.task.Artifacts = append(p.task.Artifacts, a)
	return []Frame{{Update{ArtifactUpdate: &ArtifactUpdate{TaskID: p.task.ID, ContextID: p.task.ContextID, Artifact: a, LastChunk: true}},
		ev.Seq, false}}
}

// toolFrames reports a tool call, with all its data to readers that accept JSON.
func (p *Projection) toolFrames(ev event.Event, text string) []Frame {
	var parts []Part
	if text != "" && p.modes.Text {
		parts = append(parts, textPart(text))
	}
	if p.modes.JSON {
		parts = append(parts, dataPart(namedData(ev)))
	}
	if len(parts) == 0 {
		return nil
	}
	frames := p.statusFrames(ev, Working, agentMessage(&p.task, ev.Seq, parts...))
	p.task.Status.Message = nil // it is temporary: the task keeps no trace of it
	return frames
}

// doneFrames ends the task.
func (p *Projection) doneFrames(ev event.Event) []Frame {
	var frames []Frame
	if p.answer != nil {
		frames = p.textFrames(ev, "", true)
		frames[0].ID = 0
	}
	end, m := Completed, (*Message)(nil)
	if p.fail != nil {
		end = Failed
		if p.fail.Code == event.Canceled {
			end = Canceled
		}
		p.addMetadata("error", map[string]any{"code": p.fail.Code, "recoverable": p.fail.Recoverable})
		m = agentMessage(&p.task, ev.Seq, textPart(p.fail.Message))
	}
	last := p.statusFrames(ev, end, m)
	last[0].StatusUpdate.Metadata = p.task.Metadata
	return append(frames, last...)
}

func (p *Projection) addMetadata(name string, value any) {
	metadata := map[string]any{name: value}
	for k, v := range p.task.Metadata { // an earlier snapshot may share the map
		metadata[k] = v
	}
	p.task.Metadata = metadata
}
