package logging

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/parley-server/parley/internal/pgerr"
)

const (
	window   = time.Minute // in which repetitions of a message are counted
	admitted = 5           // lines with one message in a window
	lost     = 1           // lines with the loss of the database as their cause in a window
	// messages is how many messages are counted at once. Those of net/http contain addresses: the
	// rest pass uncounted.
	messages = 256
)

// message identifies lines that repeat each other. Their attributes may differ, except for the model:
// the failures of one do not hide those of another.
type message struct {
	level slog.Level
	text  string
	model string
}

// manyFailed is the text of all warnings about operations that fail without the database: when it is
// lost, each operation has a warning of its own.
const manyFailed = "operations failed: no connection to the database"

// messageOf returns the message of a line, and how many of its lines a window admits.
func messageOf(r slog.Record) (m message, most int) {
	m, most = message{level: r.Level, text: r.Message}, admitted
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == "model" {
			m.model = a.Value.String()
		}
		if err, ok := a.Value.Any().(error); ok && r.Level == slog.LevelWarn && pgerr.IsLost(err) {
			m, most = message{level: r.Level, text: manyFailed}, lost
			return false
		}
		return true
	})
	return m, most
}

// repeats counts the messages of the current windows.
type repeats struct {
	emit slog.Handler

	mu   sync.Mutex
	seen map[message]*repeated
}

type repeated struct {
	most  int // lines that are written
	lines int
	first slog.Record // the first line that was left out
	last  time.Time   // when the newest line came
}

// admit reports whether a line is written. The others of its window are summarized at its end.
func (s *repeats) admit(r slog.Record) bool {
	m, most := messageOf(r)
	s.mu.Lock()
	defer s.mu.Unlock()
	seen := s.seen[m]
	if seen == nil {
		if len(s.seen) >= messages {
			return true
		}
		seen = &repeated{most: most}
		s.seen[m] = seen
		time.AfterFunc(window, func() { s.summarize(m) })
	}
	seen.last = r.Time
	if seen.lines++; seen.lines == most+1 {
		seen.first = r.Clone()
	}
	return seen.lines <= most
}

// summarize ends the window of a message. Its line has the attributes of one that was left out.
func (s *repeats) summarize(m message) {
	s.mu.Lock()
	seen := s.seen[m]
	delete(s.seen, m)
	s.mu.Unlock()
	if seen.lines <= seen.most {
		return
	}
	line := seen.first
	line.Time, line.Message = time.Now(), m.text
	line.AddAttrs(slog.Int("repeated", seen.lines-seen.most), slog.Time("until", seen.last))
	_ = s.emit.Handle(context.Background(), line)
}
