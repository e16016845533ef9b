package filestore

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/parley-server/parley/db"
)

// Limits of the file content of one message for a model, in bytes.
const (
	// ReadText is for all texts together.
	ReadText = 256 << 10
	// ReadImage is for one image.
	ReadImage = 5 << 20
	// ReadPDF is for one PDF.
	ReadPDF = 10 << 20
	// ReadImages is for all images and PDFs together.
	ReadImages = 20 << 20
	// ReadPDFText is for the extracted texts of all PDFs together.
	ReadPDFText = 256 << 10
	// TextPerByte is how many bytes of text are stored for a byte of a PDF.
	TextPerByte = 16
)

// Inbound is a file in a message, as a model receives it.
type Inbound struct {
	Filename string
	MIME     string
	Size     int64
	// Data is the content that a model can read: a text in UTF-8, with a last line that reports a
	// truncation, an image or a PDF. Nil: none.
	Data []byte
	// Extracted is the text of a PDF, for models that do not read PDFs: with a last line in brackets
	// if it is not complete or there is none. "": none was extracted.
	Extracted string
}

// Image reports whether the file is an image in a format that models support.
func (f Inbound) Image() bool {
	switch f.MIME {
	case "image/png", "image/jpeg", "image/gif", "image/webp":
		return true
	}
	return false
}

// PDF reports whether the file is a PDF.
func (f Inbound) PDF() bool { return f.MIME == "application/pdf" }

// Text reports whether the file is some form of text.
func (f Inbound) Text() bool { return isText(f.MIME) }

// Inbound reads the files in the message of a turn, in its order: texts, images and PDFs up to the
// limits, and only the names of all others. With extract set, PDFs without a stored text get one.
func (s *Store) Inbound(ctx context.Context, turn uuid.UUID, extract bool) ([]Inbound, error) {
	rows, err := s.q.TurnFiles(ctx, turn)
	if err != nil {
		return nil, fmt.Errorf("read attached files: %w", err)
	}
	text, images, extracted := int64(ReadText), int64(ReadImages), int64(ReadPDFText)
	list := make([]Inbound, len(rows))
	for i, r := range rows {
		f := Inbound{Filename: r.Filename, MIME: r.Mime, Size: *r.Size}
		switch {
		case f.Text():
			err = s.readText(ctx, r, &f, &text)
		case f.Size <= images && (f.Image() && f.Size <= ReadImage || f.PDF() && f.Size <= ReadPDF):
			images -= f.Size
			f.Data, err = io.ReadAll(contentOf(s.q, r).Reader(ctx))
			if err == nil && f.PDF() {
				err = s.readPDFText(ctx, r, &f, &extracted, extract)
			}
		}
		if err != nil {
			return nil, fmt.Errorf("read attached file: %w", err)
		}
		list[i] = f
	}
	return list, nil
}

// readText reads a text up to the remaining limit for texts.
func (s *Store) readText(ctx context.Context, r db.File, f *Inbound, room *int64) error {
	if *room == 0 && f.Size > 0 {
		return nil
	}
	raw, err := io.ReadAll(io.LimitReader(contentOf(s.q, r).Reader(ctx), *room))
	if err != nil {
		return err
	}
	whole := int64(len(raw)) == f.Size
	f.Data = unicodeText(raw)
	if int64(len(f.Data)) > *room { // the conversion to UTF-8 made it longer
		f.Data, whole = f.Data[:*room], false
	}
	if whole {
		*room -= int64(len(f.Data))
		return nil
	}
	f.Data = fmt.Appendf(wholeRunes(f.Data), "\n[cut here: the whole file has %d bytes]", f.Size)
	*room = 0
	return nil
}

// unicodeText converts a text to UTF-8: from UTF-16 with a byte order mark, or by replacing invalid
// bytes.
func unicodeText(raw []byte) []byte {
	var order binary.ByteOrder
	switch {
	case bytes.HasPrefix(raw, []byte{0xff, 0xfe}):
		order = binary.LittleEndian
	case bytes.HasPrefix(raw, []byte{0xfe, 0xff}):
		order = binary.BigEndian
	default:
		return append([]byte{}, bytes.ToValidUTF8(bytes.TrimPrefix(raw, []byte("\ufeff")), []byte("\ufffd"))...)
	}
	units := make([]uint16, 0, len(raw)/2)
	for i := 2; i+1 < len(raw); i += 2 {
		units = append(units, order.Uint16(raw[i:]))
	}
	var text strings.Builder
	for _, r := range utf16.Decode(units) {
		text.WriteRune(r)
	}
	return []byte(text.String())
}

// wholeRunes removes an incomplete character at the end of a text.
func wholeRunes(text []byte) []byte {
	for len(text) > 0 {
		if r, n := utf8.DecodeLastRune(text); r != utf8.RuneError || n > 1 {
			break
		}
		text = text[:len(text)-1]
	}
	return text
}
