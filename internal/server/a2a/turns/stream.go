package turns

import (
	"context"
	"errors"
	"iter"
	"net/http"
	"time"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/eventlog"
	"github.com/parley-server/parley/internal/server"
	"github.com/parley-server/parley/internal/server/a2a/call"
	"github.com/parley-server/parley/internal/server/a2a/rpc"
	"github.com/parley-server/parley/internal/server/a2a/task"
	"github.com/parley-server/parley/internal/session"
	"github.com/parley-server/parley/internal/sse"
)

const reconnect = 2 * time.Second // sent with the first frame

// start is the position where a stream begins.
type start int

const (
	fromStart  start = iota // at the first event of the task
	fromNow                 // at the current state of the task
	fromCursor              // after a frame
)

// look describes what a reader wants to see of a task.
type look struct {
	view    session.View
	modes   task.Modes
	history int
	from    start
	cursor  int64
	answers bool // it has answered the task, which may have ended since
}

// lastEventID returns the id of the reader's last frame, or 0.
func lastEventID(c *call.Call) (int64, error) {
	values := c.R.Header.Values("Last-Event-ID")
	if len(values) == 0 || len(values) == 1 && values[0] == "" {
		return 0, nil
	}
	cursor, _, err := server.ParseCursor("Last-Event-ID", values)
	return cursor, err
}

// Subscribe streams a task that has not ended: the current task, then its frames; with the id of a
// frame, the task as it was then and every frame since. A client that lost a stream thus gets the
// rest, even of a task that has ended meanwhile.
func Subscribe(c *call.Call) (any, error) {
	cursor, err := lastEventID(c)
	if err != nil {
		return nil, err
	}
	id, err := c.TaskID("id")
	if err != nil {
		return nil, err
	}
	release, err := c.HoldStream(c.R.Context(), c.Caller)
	if err != nil {
		return nil, err
	}
	defer release()
	v, err := c.Read(id)
	if err != nil {
		return nil, err
	}
	l := &look{view: v, modes: task.Whole.Modes, history: -1, from: fromNow}
	if cursor > 0 {
		l.from, l.cursor = fromCursor, cursor
	}
	return nil, streamTask(c, l)
}

// streamTask responds with the frames of a task. A failure before the first frame is an error of
// the call; a later one is a frame, or an early end.
func streamTask(c *call.Call, l *look) error {
	upto, err := findPlace(c, l)
	if err != nil {
		return err
	}
	history, err := readHistory(c, l)
	if err != nil {
		return err
	}
	begun := beginOf(l.view)
	err = server.StreamTurn(c.Server, c.W, c.R.Context(), server.Stream{Session: begun.Session, Turn: l.view.Turn.ID, Key: c.Caller.Key},
		func(ctx context.Context) iter.Seq2[[]event.Event, error] { return c.Events(ctx, begun, l.view.Turn.ID) },
		func(sw *sse.Writer) server.BatchEncoder[event.Event] {
			return &writer{Call: c, sw: sw, turn: l.view.Turn.ID, upto: upto, taskSent: l.from == fromStart,
				p: task.NewProjection(c.Base, l.modes, task.ContextOf(l.view), l.view.Turn.ID, history)}
		})
	if err != nil && !errors.Is(err, eventlog.ErrGone) { // it has a frame of its own
		panic(http.ErrAbortHandler) // the client must not take this as the end of the task
	}
	return nil
}

// readHistory returns the messages of a task that a reader requests.
func readHistory(c *call.Call, l *look) ([]task.Message, error) {
	ctx, stop := c.BriefContext()
	defer stop()
	files, err := c.FilesOf(ctx, l.view)
	return task.History(c.Base, l.view, files.In, l.history), err
}

// findPlace returns the event up to which a reader has the frames, or gets them as part of the
// task.
func findPlace(c *call.Call, l *look) (upto int64, err error) {
	ctx, stop := c.BriefContext()
	defer stop()
	var cursor int64
	if l.from == fromCursor {
		cursor = l.cursor
	}
	h, err := c.Sessions.HeadAt(ctx, c.Workspace(), l.view.Turn.SessionID, cursor)
	if err != nil {
		return 0, err
	}
	t := l.view.Turn
	ended := task.StateOf(t).IsTerminal()
	switch {
	case h.Erased || ended && t.EndSeq != nil && *t.EndSeq <= h.GoneSeq:
		return 0, eventlog.ErrGone
	case l.from == fromStart:
		return 0, nil
	case l.from == fromCursor && (l.cursor < t.StartSeq || h.Foreign || ended && l.cursor > *t.EndSeq):
		return 0, server.InvalidCursor("Last-Event-ID", "Last-Event-ID names no frame of this task.")
	case ended && (l.from == fromNow && !l.answers || l.from == fromCursor && l.cursor == *t.EndSeq):
		return 0, &rpc.Error{Code: rpc.Unsupported, Message: "The task has ended: nothing comes of it any more. Read it by its id.",
			About: map[string]string{"taskId": t.ID.String()}}
	case l.from == fromCursor:
		return l.cursor, nil
	}
	return h.LastSeq, nil
}

// beginOf returns the position just before the first event of a turn.
func beginOf(v session.View) eventlog.From {
	return eventlog.From{Session: v.Turn.SessionID, Seq: v.Turn.StartSeq - 1, Since: v.Turn.CreatedAt}
}
