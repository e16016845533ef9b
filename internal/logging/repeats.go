package logging

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

const (
	window   = time.Minute // in which repetitions of a message are counted
	admitted = 5           // lines with one message in a window
	// messages is how many messages are counted at once. Those of net/http contain addresses: the
	// rest pass uncounted.
	messages = 256
)

// message identifies lines that repeat each other. Their attributes may differ.
type message struct {
	level slog.Level
	text  string
}

// repeats counts the messages of the current windows.
type repeats struct {
	emit slog.Handler

	mu   sync.Mutex
	seen map[message]*repeated
}

type repeated struct {
	lines int
	first slog.Record // the first line that was left out
}

// admit reports whether a line is written. The others of its window are summarized at its end.
func (s *repeats) admit(r slog.Record) bool {
	m := message{r.Level, r.Message}
	s.mu.Lock()
	defer s.mu.Unlock()
	seen := s.seen[m]
	if seen == nil {
		if len(s.seen) >= messages {
			return true
		}
		seen = &repeated{}
		s.seen[m] = seen
		time.AfterFunc(window, func() { s.summarize(m) })
	}
	if seen.lines++; seen.lines == admitted+1 {
		seen.first = r.Clone()
	}
	return seen.lines <= admitted
}

// summarize ends the window of a message. Its line has the attributes of one that was left out.
func (s *repeats) summarize(m message) {
	s.mu.Lock()
	seen := s.seen[m]
	delete(s.seen, m)
	s.mu.Unlock()
	if seen.lines <= admitted {
		return
	}
	line := seen.first
	line.Time = time.Now()
	line.AddAttrs(slog.Int("repeated", seen.lines-admitted), slog.Duration("within", window))
	_ = s.emit.Handle(context.Background(), line)
}
