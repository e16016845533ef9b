package web

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/eventlog"
	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/model"
)

const turnsOnTimeline = 20

// timelineTurn is a turn with its steps, as bars on one axis.
type timelineTurn struct {
	ID          uuid.UUID
	At          time.Time
	Took        time.Duration
	State, Word string // class and name of the status
	Usage       *event.Usage
	Steps       []*timelineStep
	Ticks       []timelineTick
	Cut         string // position where the axis is cut for a wait; "": it is not

	catalog *model.Catalog // of context windows; nil: that of this release
	model   time.Time      // a model call may have begun; zero: none
	queued  time.Time      // since when it waits for a worker; zero: it does not
	calls   int
	tools   map[string]*timelineStep
	pending *timelineStep // request that has no answer
	ended   bool
}

// timelineStep is a model call, a tool call or a wait.
type timelineStep struct {
	Name, Detail string
	Class        string // of its bar
	Begin, End   time.Time
	Running      bool
	X, Width     string // in percent
}

// Took is how long the step took, so far.
func (s *timelineStep) Took() time.Duration { return s.End.Sub(s.Begin) }

// timelineTick is a mark of the axis.
type timelineTick struct{ X, Label string }

// readTimeline reads the turns of a session after a position.
func (a *App) readTimeline(p *page, view *sessionView) error {
	var after int64
	if seq := p.URL.Query().Get("after"); seq != "" {
		var ok bool
		if after, ok = parseSeq(seq); !ok {
			return fault.New(fault.InvalidCursor, "The position %.20q is not the number of an event.", seq)
		}
	}
	now, last := time.Now(), after
	from := eventlog.From{Session: view.Session.SessionID, Seq: after, Since: view.Session.CreatedAt}
read:
	for evs, err := range a.srv.EventLog.After(p.Context(), from) {
		if errors.Is(err, eventlog.ErrGone) {
			view.Gone = true
			break
		}
		if err != nil {
			return err
		}
		for _, ev := range evs {
			turn := turnOf(view, ev)
			if turn == nil {
				view.More = last
				break read
			}
			turn.catalog = a.Catalog
			if err := turn.add(ev); err != nil {
				return fmt.Errorf("read event %d: %w", ev.Seq, err)
			}
			last = ev.Seq
		}
	}
	for _, turn := range view.Timeline {
		turn.finish(now)
	}
	return nil
}

// turnOf returns the turn of an event, or nil if the page is full. Turns may overlap: one that is
// lined up begins before another ends.
func turnOf(view *sessionView, ev event.Event) *timelineTurn {
	for _, turn := range view.Timeline {
		if turn.ID == ev.Turn {
			return turn
		}
	}
	if len(view.Timeline) == turnsOnTimeline {
		return nil
	}
	turn := &timelineTurn{ID: ev.Turn, At: ev.At, queued: ev.At, tools: make(map[string]*timelineStep)}
	view.Timeline = append(view.Timeline, turn)
	return turn
}

// add adds an event to its turn.
func (t *timelineTurn) add(ev event.Event) error {
	switch ev.Kind {
	case event.KindStarted:
		if !t.queued.IsZero() {
			t.step("queue", "waited for a worker", "c2", t.queued, ev.At)
		}
		t.model, t.queued = ev.At, time.Time{}
	case event.KindReply:
		return t.addReply(ev)
	case event.KindCompacted:
		return t.addSummary(ev)
	case event.KindToolUse:
		var use event.ToolUse
		if err := json.Unmarshal(ev.Data, &use); err != nil {
			return err
		}
		t.tools[use.ToolUseID] = t.step(use.Tool, use.Summary, "c3", ev.At, time.Time{})
	case event.KindToolResult:
		var result event.ToolResult
		if err := json.Unmarshal(ev.Data, &result); err != nil {
			return err
		}
		if s := t.tools[result.ToolUseID]; s != nil {
			s.End = ev.At
		}
		t.model = ev.At
	case event.KindInputRequired, event.KindToolRequired, event.KindConnect:
		t.pending = t.step(string(event.QuestionKind(ev.Data)), "waited for an answer", "c4", ev.At, time.Time{})
	case event.KindDecision:
		if t.pending != nil {
			t.pending.End, t.pending = ev.At, nil
		}
		t.queued, t.model = ev.At, time.Time{}
	case event.KindUsage:
		return json.Unmarshal(ev.Data, &t.Usage)
	case event.KindError:
		var failure event.Error
		if err := json.Unmarshal(ev.Data, &failure); err != nil {
			return err
		}
		t.State, t.Word = "bad", string(failure.Code)
	case event.KindDone:
		t.ended, t.Took = true, ev.At.Sub(t.At)
	}
	return nil
}

func (t *timelineTurn) addReply(ev event.Event) error {
	var reply event.Reply
	if err := json.Unmarshal(ev.Data, &reply); err != nil {
		return err
	}
	if t.model.IsZero() { // its begin is past the retention
		t.model = ev.At
	}
	t.calls++
	t.step(fmt.Sprintf("model call %d", t.calls), t.callDetail(reply), "c1", t.model, ev.At)
	t.model = time.Time{}
	return nil
}

// callDetail describes a model call: its tokens, their share of the window, and what the model did not
// receive in full.
func (t *timelineTurn) callDetail(reply event.Reply) string {
	used := reply.Usage
	detail := num(used.InputTokens) + " in, " + num(used.OutputTokens) + " out"
	window := t.catalog.Window(used.Model)
	if reply.Sent != nil && reply.Sent.Window > 0 {
		window = reply.Sent.Window
	}
	detail += fmt.Sprintf(" · %d %% of the window", used.InputTokens*100/int64(window))
	if used.CachedInputTokens > 0 && used.InputTokens > 0 {
		detail += fmt.Sprintf(" · %d %% cached", used.CachedInputTokens*100/used.InputTokens)
	}
	if reply.Sent != nil && reply.Sent.Masked != nil {
		detail += " · old results masked"
	}
	return detail
}

// addSummary adds the model call that summarized the oldest part of the conversation.
func (t *timelineTurn) addSummary(ev event.Event) error {
	var c event.Compacted
	if err := json.Unmarshal(ev.Data, &c); err != nil {
		return err
	}
	if t.model.IsZero() {
		t.model = ev.At
	}
	t.step("summary", "compacted the conversation from "+num(c.TokensBefore)+" to "+num(c.TokensAfter)+" tokens", "c1", t.model, ev.At)
	t.model = ev.At
	return nil
}

func (t *timelineTurn) step(name, detail, class string, begin, end time.Time) *timelineStep {
	s := &timelineStep{Name: name, Detail: detail, Class: class, Begin: begin, End: end}
	t.Steps = append(t.Steps, s)
	return s
}

// finish ends the steps that are in progress, and places the bars.
func (t *timelineTurn) finish(now time.Time) {
	if !t.ended {
		t.Took, t.State, t.Word = now.Sub(t.At), "run", "Running"
		switch {
		case t.pending != nil:
			t.State, t.Word = "warn", "Waiting"
		case !t.queued.IsZero():
			t.State, t.Word = "off", "Queued"
			t.step("queue", "waits for a worker", "c2", t.queued, time.Time{})
		case !t.model.IsZero():
			t.step(fmt.Sprintf("model call %d", t.calls+1), "in progress", "c1", t.model, time.Time{})
		}
	} else if t.Word == "" {
		t.State, t.Word = "ok", "Completed"
	}
	end := t.At.Add(max(0, t.Took))
	for _, s := range t.Steps {
		if s.End.IsZero() {
			s.End, s.Running = end, !t.ended
		}
		if s.End.Before(s.Begin) { // two clocks
			s.End = s.Begin
		}
	}
	t.place(end)
}

// gap is a part of a wait that the axis leaves out.
type gap struct{ begin, end time.Time }

// place sets the positions of bars and marks. A wait for an answer that is longer than half of the
// other time is cut to that.
func (t *timelineTurn) place(end time.Time) {
	work := t.Took
	for _, s := range t.Steps {
		if s.Class == "c4" {
			work -= s.Took()
		}
	}
	longest := max(work/2, time.Second)
	var gaps []gap
	for _, s := range t.Steps {
		if s.Class == "c4" && s.Took() > longest {
			gaps = append(gaps, gap{s.Begin.Add(longest), s.End})
		}
	}
	shown := func(at time.Time) time.Duration {
		d := at.Sub(t.At)
		for _, g := range gaps {
			if at.After(g.begin) {
				d -= min(at.Sub(g.begin), g.end.Sub(g.begin))
			}
		}
		return max(0, d)
	}
	whole := max(shown(end), time.Millisecond)
	percent := func(d time.Duration) string { return fmt.Sprintf("%.2f%%", 100*min(1, float64(d)/float64(whole))) }
	for _, s := range t.Steps {
		width := max(shown(s.End)-shown(s.Begin), whole/250)
		s.X, s.Width = percent(min(shown(s.Begin), whole-width)), percent(width)
	}
	until := whole
	if len(gaps) > 0 {
		until = shown(gaps[0].begin) - longest
		t.Cut = percent(until)
	}
	unit := tickUnit(whole)
	for d := time.Duration(0); d <= until-until/12; d += unit {
		t.Ticks = append(t.Ticks, timelineTick{percent(d), duration(d)})
	}
}

// tickUnit returns the distance of the marks, so that there are at most six.
func tickUnit(whole time.Duration) time.Duration {
	for unit := time.Millisecond; ; unit *= 10 {
		for _, n := range []time.Duration{1, 2, 5} {
			if whole/(n*unit) <= 5 {
				return n * unit
			}
		}
	}
}
