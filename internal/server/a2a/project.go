package a2a

import (
	"strings"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/event"
)

// frame is one frame of a stream. If one event makes several frames, only the last has an id: a
// reader that resumes with it has received them all.
type frame struct {
	update
	id    int64 // 0: none
	waits bool  // the task now waits for an answer that is not known yet
}

// projection turns the events of a turn into frames, and into the resulting task. It depends on
// nothing else, so every reader of a turn gets the same frames.
type projection struct {
	base   string // the base address of links
	modes  modes
	task   task
	answer []byte // the text of the newest step with text; nil: none
	begins bool   // the next text is the first of its step
	fail   *event.Error
}

// project begins a projection before the first event of a turn.
func project(base string, m modes, context, id uuid.UUID, history []message) *projection {
	return &projection{base: base, modes: m, task: task{ID: id, ContextID: context, History: history}}
}

// apply applies the next event of the turn.
func (p *projection) apply(ev event.Event) ([]frame, error) {
	body, err := ev.Body()
	if err != nil {
		return nil, err
	}
	switch b := body.(type) {
	case event.Open:
		p.task.Status = status{State: submitted, Timestamp: stamp(ev.At)}
		return []frame{{update{Task: p.snapshot()}, ev.Seq, false}}, nil
	case event.Started:
		if p.task.Status.State == working { // another worker has taken over
			return nil, nil
		}
		return p.status(ev, working, nil), nil
	case event.Decision:
		return p.status(ev, working, nil), nil
	case event.Text:
		if !p.modes.text {
			return nil, nil
		}
		return p.text(ev, b.Text, false), nil
	case event.Reply:
		p.begins = true
	case event.ToolUse:
		return p.tool(ev, b.Tool+": "+b.Summary), nil
	case event.ToolResult:
		return p.tool(ev, ""), nil
	case event.InputRequired:
		return p.status(ev, inputRequired, question(p.base, &p.task, b)), nil
	case event.AttachmentRejected:
		p.note("rejected_attachments", b.Attachments)
	case event.Usage:
		p.note("usage", public(ev.Data))
	case event.Structured:
		return p.artifact(ev, artifact{resultID, resultID, []part{p.modes.result(b.Result)}}), nil
	case event.Attachment:
		return p.artifact(ev, artifact{filesID, filesID, fileParts(p.base, b.Attachments)}), nil
	case event.Error:
		p.fail = &b
	case event.Done:
		return p.done(ev), nil
	}
	return nil, nil
}

// snapshot returns the current task.
func (p *projection) snapshot() *task {
	t := p.task
	t.Artifacts = append([]artifact(nil), p.task.Artifacts...)
	if p.answer != nil {
		t.Artifacts = append([]artifact{{answerID, answerID, []part{textPart(string(p.answer))}}}, t.Artifacts...)
	}
	return &t
}

// now returns the task's present state for a reader that has all frames up to id.
func (p *projection) now(id int64) frame {
	return frame{update{StatusUpdate: &statusUpdate{TaskID: p.task.ID, ContextID: p.task.ContextID, Status: p.task.Status}}, id, true}
}

// status changes the state of the task.
func (p *projection) status(ev event.Event, s state, m *message) []frame {
	p.task.Status = status{State: s, Message: m, Timestamp: stamp(ev.At)}
	return []frame{{update{StatusUpdate: &statusUpdate{TaskID: p.task.ID, ContextID: p.task.ContextID, Status: p.task.Status}}, ev.Seq, s == inputRequired}}
}

// text adds a piece of the answer, or its end. The answer is the text of the last step: the first
// piece of a step replaces the text of earlier steps.
func (p *projection) text(ev event.Event, text string, last bool) []frame {
	if p.begins && text != "" && !last {
		p.begins, p.answer, text = false, nil, strings.TrimPrefix(text, event.StepBreak)
	}
	piece := artifact{answerID, answerID, []part{textPart(text)}}
	more := p.answer != nil
	p.answer = append(p.answer, text...)
	if p.answer == nil {
		p.answer = []byte{}
	}
	return []frame{{update{ArtifactUpdate: &artifactUpdate{p.task.ID, p.task.ContextID, piece, more, last}}, ev.Seq, false}}
}

// artifact adds an artifact in one piece.
func (p *projection) artifact(ev event.Event, a artifact) []frame {
	p.task.Artifacts = append(p.task.Artifacts, a)
	return []frame{{update{ArtifactUpdate: &artifactUpdate{TaskID: p.task.ID, ContextID: p.task.ContextID, Artifact: a, LastChunk: true}}, ev.Seq, false}}
}

// tool reports a tool call, with all its data to readers that accept JSON.
func (p *projection) tool(ev event.Event, text string) []frame {
	var parts []part
	if text != "" && p.modes.text {
		parts = append(parts, textPart(text))
	}
	if p.modes.json {
		parts = append(parts, dataPart(named(ev)))
	}
	if len(parts) == 0 {
		return nil
	}
	frames := p.status(ev, working, agentMessage(&p.task, ev.Seq, parts...))
	p.task.Status.Message = nil // it is temporary: the task keeps no trace of it
	return frames
}

// done ends the task.
func (p *projection) done(ev event.Event) []frame {
	var frames []frame
	if p.answer != nil {
		frames = p.text(ev, "", true)
		frames[0].id = 0
	}
	end, m := completed, (*message)(nil)
	if p.fail != nil {
		end = failed
		if p.fail.Code == event.Canceled {
			end = canceled
		}
		p.note("error", map[string]any{"code": p.fail.Code, "recoverable": p.fail.Recoverable})
		m = agentMessage(&p.task, ev.Seq, textPart(p.fail.Message))
	}
	last := p.status(ev, end, m)
	last[0].StatusUpdate.Metadata = p.task.Metadata
	return append(frames, last...)
}

func (p *projection) note(name string, value any) {
	metadata := map[string]any{name: value}
	for k, v := range p.task.Metadata { // an earlier snapshot may share the map
		metadata[k] = v
	}
	p.task.Metadata = metadata
}
