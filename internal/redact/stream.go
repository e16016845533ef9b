package redact

import "io"

// stream redacts a text piece by piece and holds back only what may yet be a part
// of a secret.
type stream struct {
	*Redactor
	scanner *scanner
	held    []byte // the end of the text so far
	from    int    // where in the text it begins
}

// push takes a piece and appends to out what is certain.
func (s *stream) push(out, piece []byte) []byte {
	s.held = append(s.held, piece...)
	s.scanner.scan(piece)
	return s.drain(out, s.scanner.settled())
}

// end appends the rest.
func (s *stream) end(out []byte) []byte {
	s.scanner.finish()
	return s.drain(out, s.scanner.at)
}

func (s *stream) drain(out []byte, settled int) []byte {
	done, at := 0, s.from
	for _, f := range s.scanner.found {
		if f.end > settled {
			settled = min(settled, f.start)
			break
		}
		out = append(out, s.held[at-s.from:f.start-s.from]...)
		out = append(out, s.marks[f.secret]...)
		at = f.end
		done++
	}
	s.scanner.found = s.scanner.found[:copy(s.scanner.found, s.scanner.found[done:])]
	if settled > at {
		out = append(out, s.held[at-s.from:settled-s.from]...)
		at = settled
	}
	s.held = s.held[:copy(s.held, s.held[at-s.from:])]
	s.from = at
	return out
}

// Reader redacts what is read from src.
func (r *Redactor) Reader(src io.Reader) io.Reader {
	if r == nil {
		return src
	}
	return &reader{src: src, stream: stream{Redactor: r, scanner: newScanner(r)}}
}

type reader struct {
	src    io.Reader
	stream stream
	buf    []byte // what src gave
	out    []byte // what may be read
	read   int    // how much of it was
	err    error
}

// pieceSize is how much is read at once.
const pieceSize = 32 << 10

func (r *reader) Read(p []byte) (int, error) {
	for len(p) > 0 && r.read == len(r.out) && r.err == nil {
		if r.buf == nil {
			r.buf = make([]byte, pieceSize)
		}
		n, err := r.src.Read(r.buf)
		r.out, r.read, r.err = r.stream.push(r.out[:0], r.buf[:n]), 0, err
		if err != nil {
			r.out = r.stream.end(r.out)
		}
	}
	n := copy(p, r.out[r.read:])
	r.read += n
	if r.read < len(r.out) {
		return n, nil
	}
	return n, r.err
}

// Writer redacts what is written to dst. Close writes what was held back and leaves
// dst open.
func (r *Redactor) Writer(dst io.Writer) io.WriteCloser {
	if r == nil {
		return open{dst}
	}
	return &writer{dst: dst, stream: stream{Redactor: r, scanner: newScanner(r)}}
}

// open is a writer that is not ours to close.
type open struct{ io.Writer }

func (open) Close() error { return nil }

type writer struct {
	dst    io.Writer
	stream stream
	out    []byte
}

func (w *writer) Write(p []byte) (int, error) {
	if w.out = w.stream.push(w.out[:0], p); len(w.out) > 0 {
		if _, err := w.dst.Write(w.out); err != nil {
			return 0, err
		}
	}
	return len(p), nil
}

func (w *writer) Close() error {
	if w.out = w.stream.end(w.out[:0]); len(w.out) == 0 {
		return nil
	}
	_, err := w.dst.Write(w.out)
	return err
}
