package server

import (
	"context"
	"errors"
	"iter"
	"net/http"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/eventlog"
	"github.com/parley-server/parley/internal/sse"
)

// Encoder encodes the rows of one reading, in order, as the frames of a protocol: values that are
// encoded as JSON, or RawFrame.
type Encoder interface {
	Begin() []any
	Row(Row) []any
	Fail(event.Error) []any // the stream ends early
}

// EventsGone is the failure of a reading whose rows are missing.
var EventsGone = event.SessionGone.Failure("The events of this turn are not there any more. Read the session's messages.")

// RawFrame is a frame that is not JSON.
type RawFrame string

// NamedFrame is a frame with an event name.
type NamedFrame interface{ Event() string }

// StreamReading responds with the frames of a reading. After the first frame, a failure can only be
// reported by closing the connection.
func (s *Server) StreamReading(w http.ResponseWriter, r *Request, rd Reading, enc Encoder) error {
	if r.Method == http.MethodHead {
		sse.Headers(w.Header())
		w.WriteHeader(http.StatusOK)
		return nil
	}
	err := StreamTurn(s, w, r.Context(), Stream{Session: rd.Session(), Turn: rd.Turn, Key: r.Caller.Key},
		func(ctx context.Context) iter.Seq2[[]Row, error] { return s.TurnRows(ctx, r.Caller, rd) },
		func(sw *sse.Writer) BatchEncoder[Row] { return &rowEncoder{sw, enc} })
	if err != nil && !errors.Is(err, eventlog.ErrGone) {
		panic(http.ErrAbortHandler)
	}
	return nil
}

// rowEncoder writes the frames of an Encoder.
type rowEncoder struct {
	sw  *sse.Writer
	enc Encoder
}

func (e *rowEncoder) Begin() error {
	if err := writeFrames(e.sw, e.enc.Begin()); err != nil {
		return err
	}
	return e.sw.Flush()
}

func (e *rowEncoder) Gone(error) error { return writeFrames(e.sw, e.enc.Fail(EventsGone)) }

func (e *rowEncoder) Batch(rows []Row) (ended bool, err error) {
	for _, row := range rows {
		if err := writeFrames(e.sw, e.enc.Row(row)); err != nil {
			return false, err
		}
	}
	return false, nil
}

// WriteFrames responds with a stream of frames without a turn.
func (s *Server) WriteFrames(w http.ResponseWriter, frames []any) error {
	sw := sse.Open(w, sse.Options{Keepalive: s.Keepalive, WriteTimeout: s.WriteTimeout})
	defer sw.Close()
	if writeFrames(sw, frames) != nil || sw.Flush() != nil {
		panic(http.ErrAbortHandler)
	}
	return nil
}

func writeFrames(sw *sse.Writer, frames []any) error {
	for _, f := range frames {
		data, err := EncodeFrame(f)
		if err != nil {
			return err
		}
		if named, ok := f.(NamedFrame); ok {
			err = sw.Named(named.Event(), data)
		} else {
			err = sw.Message(0, data)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// EncodeFrame returns the data of a frame, on one line for every parser.
func EncodeFrame(frame any) ([]byte, error) {
	if raw, ok := frame.(RawFrame); ok {
		return []byte(raw), nil
	}
	data, err := Encode(frame)
	if err != nil {
		return nil, err
	}
	return event.OneLine(data[:len(data)-1]), nil
}
