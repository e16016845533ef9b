package openai

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"

	"github.com/parley-server/parley/internal/model/provider"
	"github.com/parley-server/parley/internal/sse"
)

// openStream sends a request and returns the stream of its response.
func (m *Model) openStream(ctx context.Context, c provider.Call) (*chunkStream, error) {
	res, err := m.exchange.Do(ctx, c)
	if err != nil {
		return nil, err
	}
	return &chunkStream{body: res.Body, frames: sse.NewReader(res.Body), requestID: provider.RequestID(res.Header)}, nil
}

// chunkStream reads the chunks of one reply. The underlying response limits its size.
type chunkStream struct {
	body      io.Closer
	frames    *sse.Reader
	requestID string
}

// Close ends the reply, complete or not.
func (s *chunkStream) Close() { _ = s.body.Close() }

// reportedError is the event with which a server reports that the reply failed.
type reportedError struct{ data []byte }

func (*reportedError) Error() string { return "error event in the stream" }

var done = []byte("[DONE]")

// nextChunk returns the next chunk, or io.EOF at the end of the stream. Fields of the wrong
// type count as absent.
func (s *chunkStream) nextChunk() (c chatChunk, err error) {
	frame, err := s.frames.Next()
	if err != nil {
		return c, err
	}
	if bytes.HasPrefix(frame.Data, done) {
		return c, io.EOF
	}
	err = json.Unmarshal(frame.Data, &c)
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok && wrong.Field != "" {
		err = nil
	}
	if err == nil && len(c.Error) > 0 {
		err = &reportedError{frame.Data}
	}
	return c, err
}
