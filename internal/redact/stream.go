package redact

import "io"

// stream redacts a text piece by piece and holds back only text that may still be part of a secret.
type stream struct {
	*Redactor
	scanner *scanner
	held    []byte // the end of the text so far
	from    int    // its position in the text
}

// push adds a piece and writes the certain part to out.
func (s *stream) push(out output, piece []byte) {
	s.held = append(s.held, piece...)
	s.scanner.scan(piece)
	s.drain(out, s.scanner.settledLength())
}

// end writes the rest to out.
func (s *stream) end(out output) {
	s.scanner.finish()
	s.drain(out, s.scanner.at)
}

func (s *stream) drain(out output, settled int) {
	done, at := 0, s.from
	for _, f := range s.scanner.found {
		if f.end > settled {
			settled = min(settled, f.start)
			break
		}
		out.text(s.held[at-s.from : f.start-s.from])
		out.mark(s.marks[f.secret], f.end-f.start)
		at = f.end
		done++
	}
	s.scanner.found = s.scanner.found[:copy(s.scanner.found, s.scanner.found[done:])]
	if settled > at {
		out.text(s.held[at-s.from : settled-s.from])
		at = settled
	}
	s.held = s.held[:copy(s.held, s.held[at-s.from:])]
	s.from = at
}

// Reader redacts the text read from src.
func (r *Redactor) Reader(src io.Reader) io.Reader {
	if r == nil {
		return src
	}
	return &reader{src: src, stream: stream{Redactor: r, scanner: newScanner(r)}}
}

type reader struct {
	src    io.Reader
	stream stream
	buf    []byte // bytes read from src
	out    buffer // redacted text that can be read
	read   int    // number of bytes of it that were read
	err    error
}

// pieceSize is the number of bytes of one read.
const pieceSize = 32 << 10

func (r *reader) Read(p []byte) (int, error) {
	for len(p) > 0 && r.read == len(r.out) && r.err == nil {
		r.out, r.read = r.out[:0], 0
		r.fill(&r.out)
	}
	n := copy(p, r.out[r.read:])
	r.read += n
	if r.read < len(r.out) {
		return n, nil
	}
	return n, r.err
}

// WriteTo passes the marks separately to a dst that is a Marker. io.Copy calls it.
func (r *reader) WriteTo(dst io.Writer) (int64, error) {
	out := outputTo(dst)
	out.text(r.out[r.read:])
	r.read = len(r.out)
	for r.err == nil {
		r.fill(out)
		if n, err := out.flush(); err != nil {
			return n, err
		}
	}
	n, err := out.flush()
	if err == nil && r.err != io.EOF {
		err = r.err
	}
	return n, err
}

// fill redacts the next piece of src.
func (r *reader) fill(out output) {
	if r.buf == nil {
		r.buf = make([]byte, pieceSize)
	}
	var n int
	n, r.err = r.src.Read(r.buf)
	r.stream.push(out, r.buf[:n])
	if r.err != nil {
		r.stream.end(out)
	}
}
