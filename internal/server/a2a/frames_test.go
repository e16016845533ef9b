package a2a_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/parley-server/parley/internal/sse"
)

// stream is an open stream.
type stream struct {
	*caller
	res    *http.Response
	reader *sse.Reader
	cancel context.CancelFunc
	cut    bool // the connection ended without the end of the stream
}

// frame is one frame.
type frame struct {
	id   string // the newest id that the reader has
	text string // text of the result
	kind string // task, status or artifact
	task *task
	stat struct {
		TaskID, ContextID string
		Status            struct {
			State, Timestamp string
			Message          *message
		}
		Final    bool
		Metadata map[string]json.RawMessage
	}
	art struct {
		TaskID, ContextID string
		Artifact          struct {
			ArtifactID string
			Parts      []part
		}
		Append, LastChunk bool
	}
	err *rpcError
}

func (f *frame) state() string {
	return strings.TrimPrefix(strings.ToUpper(strings.ReplaceAll(f.stat.Status.State, "-", "_")), "TASK_STATE_")
}

// open calls a method that must respond with a stream.
func (c *caller) open(method, params string) *stream {
	c.t.Helper()
	ctx, cancel := context.WithCancel(c.t.Context())
	res := c.post(ctx, fmt.Sprintf(`{"jsonrpc":"2.0","id":7,"method":%q,"params":%s}`, method, params))
	c.t.Cleanup(func() { cancel(); res.Body.Close() })
	if ct := res.Header.Get("Content-Type"); ct != "text/event-stream; charset=utf-8" {
		body, _ := io.ReadAll(res.Body)
		c.t.Fatalf("%s %s: %s: %s", method, params, ct, body)
	}
	return &stream{caller: c, res: res, reader: sse.NewReader(res.Body), cancel: cancel}
}

// stream sends a command and opens its stream.
func (c *caller) stream(command string, more ...string) *stream {
	c.t.Helper()
	return c.open(c.name("SendStreamingMessage", "message/stream"), c.params(unique(), text(command), "", more...))
}

// resume resubscribes to a task. An empty cursor is that of a new reader.
func (c *caller) resume(id, cursor string) *stream {
	c.t.Helper()
	if cursor != "" {
		c = c.with("Last-Event-ID", cursor)
	}
	return c.open(c.name("SubscribeToTask", "tasks/resubscribe"), fmt.Sprintf(`{"id":%q}`, id))
}

// next returns the next frame; ok is false at the end of the stream.
func (s *stream) next() (f frame, ok bool) {
	s.t.Helper()
	raw, err := s.reader.Next()
	if s.cut = errors.Is(err, io.ErrUnexpectedEOF); s.cut || errors.Is(err, io.EOF) {
		return f, false
	}
	if err != nil {
		s.t.Fatal(err)
	}
	if raw.Event != "message" {
		s.t.Fatalf("a frame has the name %s", raw.Event)
	}
	var body struct {
		JSONRPC string
		ID      int
		Result  json.RawMessage
		Error   *rpcError
	}
	if err := json.Unmarshal(raw.Data, &body); err != nil || body.JSONRPC != "2.0" || body.ID != 7 {
		s.t.Fatalf("%s: %v", raw.Data, err)
	}
	f = frame{id: raw.ID, text: string(body.Result), err: body.Error}
	if body.Error != nil {
		f.kind = "error"
		return f, true
	}
	var kinds struct {
		Kind                         string
		Task                         json.RawMessage
		StatusUpdate, ArtifactUpdate json.RawMessage
	}
	if err := json.Unmarshal(body.Result, &kinds); err != nil {
		s.t.Fatal(err)
	}
	whole := body.Result
	for _, raw := range []json.RawMessage{kinds.Task, kinds.StatusUpdate, kinds.ArtifactUpdate} {
		if raw != nil {
			whole = raw
		}
	}
	switch {
	case kinds.Task != nil || kinds.Kind == "task":
		f.kind, f.task = "task", &task{}
		err = json.Unmarshal(whole, f.task)
	case kinds.StatusUpdate != nil || kinds.Kind == "status-update":
		f.kind = "status"
		err = json.Unmarshal(whole, &f.stat)
	case kinds.ArtifactUpdate != nil || kinds.Kind == "artifact-update":
		f.kind = "artifact"
		err = json.Unmarshal(whole, &f.art)
	default:
		s.t.Fatalf("%s", body.Result)
	}
	if err != nil {
		s.t.Fatalf("%s: %v", whole, err)
	}
	return f, true
}

// until reads to the first status with a state.
func (s *stream) until(state string) []frame {
	s.t.Helper()
	var all []frame
	for {
		f, ok := s.next()
		if !ok {
			s.t.Fatalf("the stream ends without %s: %s", state, outline(all))
		}
		if all = append(all, f); f.kind == "status" && f.state() == state {
			return all
		}
	}
}

// rest reads to the end of the stream.
func (s *stream) rest() []frame {
	s.t.Helper()
	var all []frame
	for {
		f, ok := s.next()
		if !ok {
			return all
		}
		all = append(all, f)
	}
}

// outline returns the kinds of frames, with adjacent pieces of an artifact as one.
func outline(frames []frame) string {
	var list []string
	for _, f := range frames {
		name := f.kind
		switch f.kind {
		case "task":
			name += ":" + strings.TrimPrefix(f.task.state(), "TASK_STATE_")
		case "status":
			name = f.state()
		case "artifact":
			name = f.art.Artifact.ArtifactID
		}
		if n := len(list); n == 0 || list[n-1] != name {
			list = append(list, name)
		}
	}
	return strings.Join(list, " ")
}

// heard joins the pieces of the answer as a client does.
func heard(frames []frame) string {
	var text string
	for _, f := range frames {
		switch {
		case f.kind == "task":
			text = f.task.said("answer")
		case f.kind == "artifact" && f.art.Artifact.ArtifactID == "answer":
			if !f.art.Append {
				text = ""
			}
			text += *f.art.Artifact.Parts[0].Text
		}
	}
	return text
}
