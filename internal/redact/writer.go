package redact

import "io"

// Marker is a writer that receives marks separately from other text.
type Marker interface {
	io.Writer
	// WriteMark writes the mark that replaces length bytes.
	WriteMark(mark string, length int) error
}

// Writer redacts the text written to dst, which receives the marks separately if it is a Marker.
// Close writes the held-back text and leaves dst open.
func (r *Redactor) Writer(dst io.Writer) io.WriteCloser {
	if r == nil {
		return open{dst}
	}
	return &writer{stream{Redactor: r, scanner: newScanner(r)}, outputTo(dst)}
}

// open is a writer that is not closed.
type open struct{ io.Writer }

func (open) Close() error { return nil }

type writer struct {
	stream stream
	out    destination
}

func (w *writer) Write(p []byte) (int, error) {
	w.stream.push(w.out, p)
	if _, err := w.out.flush(); err != nil {
		return 0, err
	}
	return len(p), nil
}

func (w *writer) Close() error {
	w.stream.end(w.out)
	_, err := w.out.flush()
	return err
}

// output receives redacted text.
type output interface {
	text(p []byte)
	mark(mark string, length int)
}

// destination is an output that writes. flush returns the number of bytes written so far.
type destination interface {
	output
	flush() (int64, error)
}

func outputTo(dst io.Writer) destination {
	if m, ok := dst.(Marker); ok {
		return &marked{dst: m}
	}
	return &whole{dst: dst}
}

// buffer is an output in memory.
type buffer []byte

func (b *buffer) text(p []byte)           { *b = append(*b, p...) }
func (b *buffer) mark(mark string, _ int) { *b = append(*b, mark...) }

// whole writes text and marks together.
type whole struct {
	buffer
	dst io.Writer
	n   int64
}

func (w *whole) flush() (int64, error) {
	if len(w.buffer) == 0 {
		return w.n, nil
	}
	n, err := w.dst.Write(w.buffer)
	w.n += int64(n)
	w.buffer = w.buffer[:0]
	return w.n, err
}

// marked writes marks separately. After the first error it writes nothing.
type marked struct {
	dst Marker
	n   int64
	err error
}

func (m *marked) text(p []byte) {
	if m.err == nil && len(p) > 0 {
		var n int
		n, m.err = m.dst.Write(p)
		m.n += int64(n)
	}
}

func (m *marked) mark(mark string, length int) {
	if m.err != nil {
		return
	}
	if m.err = m.dst.WriteMark(mark, length); m.err == nil {
		m.n += int64(len(mark))
	}
}

func (m *marked) flush() (int64, error) { return m.n, m.err }
