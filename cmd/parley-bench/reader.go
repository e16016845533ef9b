package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/model/builtin"
)

// reader reads one answer of stamped deltas from the network and checks it: exactly its deltas, in
// order, once, then one done, and ids that rise.
type reader struct {
	client  *client
	command string
	deltas  int // number of expected deltas
	cut     int // number of deltas after which the connection is cut once; 0 never

	session string
	lastID  string
	seq     int64
	tally   builtin.Tally
	frames  int // frames of text
	began   time.Time
	waited  time.Duration // from the request to the first delta
	seen    []sighting
}

// sighting is one delta that arrived.
type sighting struct {
	emitted int64 // Unix nanoseconds
	waited  time.Duration
}

// run sends the message and reads the answer, over two connections if it is cut.
func (r *reader) run(ctx context.Context) error {
	r.seen = make([]sighting, 0, r.deltas)
	r.began = time.Now()
	c, err := r.client.send(ctx, r.command)
	if err != nil {
		return err
	}
	done, err := r.read(ctx, c)
	if err == nil && !done { // cut
		if c, err = r.client.resume(ctx, r.session, r.lastID); err != nil {
			return err
		}
		r.cut = 0
		done, err = r.read(ctx, c)
	}
	if err != nil {
		return fmt.Errorf("session %s: %w", r.session, err)
	}
	if !done {
		return fmt.Errorf("session %s: the stream ended without done", r.session)
	}
	if err := r.tally.Whole(r.deltas); err != nil {
		return fmt.Errorf("session %s: %w", r.session, err)
	}
	return nil
}

// read reads frames until done, or until the connection must be cut.
func (r *reader) read(ctx context.Context, c *connection) (done bool, err error) {
	defer c.Close()
	renew := time.Now()
	for {
		f, err := c.Next()
		if errors.Is(err, io.EOF) && ctx.Err() == nil {
			return done, nil
		}
		if err != nil {
			return false, cmpErr(context.Cause(ctx), err)
		}
		if done {
			return false, fmt.Errorf("a frame %s after done", f.Event)
		}
		now := time.Now()
		if now.Sub(renew) > patience/4 {
			renew = now
			if err := c.SetDeadline(now.Add(patience)); err != nil {
				return false, err
			}
		}
		kind := event.Kind(f.Event)
		if err := r.position(kind, f.ID); err != nil {
			return false, err
		}
		switch kind {
		case event.KindOpen:
			var open event.Open
			if err := json.Unmarshal(f.Data, &open); err != nil {
				return false, err
			}
			r.session = open.SessionID.String()
		case event.KindText:
			if err := r.text(f.Data, now); err != nil {
				return false, err
			}
			if r.cut > 0 && r.tally.Next >= r.cut {
				return false, nil
			}
		case event.KindError:
			return false, fmt.Errorf("error frame %s", f.Data)
		case event.KindDone:
			done = true
		}
	}
}

// position checks that ids rise. Frames without a row repeat the cursor.
func (r *reader) position(kind event.Kind, id string) error {
	seq, err := strconv.ParseInt(id, 10, 64)
	if err != nil {
		return fmt.Errorf("a frame %s with the id %q", kind, id)
	}
	if seq < r.seq || seq == r.seq && kind == event.KindText {
		return fmt.Errorf("a frame %s with the id %d after %d", kind, seq, r.seq)
	}
	r.seq, r.lastID = seq, id
	return nil
}

func (r *reader) text(data []byte, now time.Time) error {
	text, err := textOf(data)
	if err != nil {
		return err
	}
	if r.frames == 0 {
		r.waited = now.Sub(r.began)
	}
	r.frames++
	return r.tally.Read(text, func(_ int, emitted time.Time) {
		r.seen = append(r.seen, sighting{emitted.UnixNano(), now.Sub(emitted)})
	})
}

var (
	textPrefix = []byte(`{"v":1,"text":"`)
	textSuffix = []byte(`"}`)
)

// textOf returns the text of a text frame. Newlines are the only escapes in stamped deltas, and a
// JSON decoder would cost the client more than the rest.
func textOf(data []byte) (string, error) {
	inner, begins := bytes.CutPrefix(data, textPrefix)
	inner, ends := bytes.CutSuffix(inner, textSuffix)
	if begins && ends {
		text := strings.ReplaceAll(string(inner), `\n`, "\n")
		if !strings.Contains(text, `\`) {
			return text, nil
		}
	}
	var b event.Text
	err := json.Unmarshal(data, &b)
	return b.Text, err
}
