package remote

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
)

// kind is the kind of a frame on the first stream. A frame is its kind, the length of its content in
// four bytes, and its content.
type kind byte

const (
	orderFrame   kind = 'q' // server: an order
	folderFrame  kind = 'f' // both: a piece of an archive
	endFrame     kind = 'e' // both: the end of an archive
	killFrame    kind = 'k' // server: the command is canceled
	begunFrame   kind = 'b' // runner: the command begins
	outputFrame  kind = 'o' // runner: a piece of the output
	outcomeFrame kind = 'r' // runner: an outcome
)

// pieceSize is the maximum content of a frame that is a piece.
const pieceSize = 64 << 10

// frames are both directions of the first stream. Frames can be written by several goroutines.
type frames struct {
	io.Reader
	mu sync.Mutex
	w  io.Writer
}

func (f *frames) writeFrame(k kind, content []byte) error {
	frame := make([]byte, 5, 5+len(content))
	frame[0] = byte(k)
	binary.BigEndian.PutUint32(frame[1:], uint32(len(content)))
	f.mu.Lock()
	defer f.mu.Unlock()
	_, err := f.w.Write(append(frame, content...))
	return err
}

func (f *frames) writeJSON(k kind, v any) error {
	content, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return f.writeFrame(k, content)
}

// readFrame reads a frame with a content of at most max bytes.
func (f *frames) readFrame(max int) (kind, []byte, error) {
	var head [5]byte
	if _, err := io.ReadFull(f, head[:]); err != nil {
		return 0, nil, err
	}
	n := binary.BigEndian.Uint32(head[1:])
	if uint64(n) > uint64(max) {
		return 0, nil, fmt.Errorf("a frame has %d bytes", n)
	}
	content := make([]byte, n)
	_, err := io.ReadFull(f, content)
	return kind(head[0]), content, err
}

func (f *frames) readJSON(k kind, max int, v any) error {
	got, content, err := f.readFrame(max)
	if err != nil {
		return err
	}
	if got != k {
		return unexpected(got)
	}
	return json.Unmarshal(content, v)
}

func unexpected(k kind) error { return fmt.Errorf("an unexpected frame, %q", byte(k)) }

// pieces writes what it is given as frames of one kind.
type pieces struct {
	*frames
	kind kind
}

func (p pieces) Write(b []byte) (n int, err error) {
	for n < len(b) {
		piece := b[n:min(len(b), n+pieceSize)]
		if err := p.writeFrame(p.kind, piece); err != nil {
			return n, err
		}
		n += len(piece)
	}
	return n, nil
}

// archive reads the frames of an archive.
type archive struct {
	*frames
	rest []byte
	end  error
}

func (a *archive) Read(b []byte) (int, error) {
	for len(a.rest) == 0 {
		if a.end != nil {
			return 0, a.end
		}
		k, content, err := a.readFrame(pieceSize)
		switch {
		case err == io.EOF:
			a.end = io.ErrUnexpectedEOF
		case err != nil:
			a.end = err
		case k == folderFrame:
			a.rest = content
		case k == endFrame:
			a.end = io.EOF
		case k == killFrame:
			a.end = errCanceled
		default:
			a.end = unexpected(k)
		}
	}
	n := copy(b, a.rest)
	a.rest = a.rest[n:]
	return n, nil
}

// close reads the end of the archive.
func (a *archive) close() error {
	n, err := a.Read(make([]byte, 1))
	switch {
	case n > 0:
		return errors.New("an archive continues after its end")
	case err == io.EOF:
		return nil
	}
	return err
}
