package filestore

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/parley-server/parley/db"
	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/pdftext"
)

// pdfParsers is how many PDFs a process parses at once. Workspaces share these places.
const pdfParsers = 4

// minPDF is the size of the smallest PDF, in bytes. Smaller files have only the note that explains it.
const minPDF = 64

// noRoom stands for a text that would exceed the storage quota of its workspace.
const noRoom = "[The PDF has no text that can be read: the storage of the workspace is full.]"

// readPDFText sets the text of a PDF, up to the remaining limit for such texts. It is stored with the
// file, so that every request with the file has the same text.
func (s *Store) readPDFText(ctx context.Context, r db.File, f *Inbound, room *int64, extract bool) error {
	text, err := s.q.FileTextGet(ctx, *r.UploadID)
	if errors.Is(err, pgx.ErrNoRows) {
		if !extract {
			return nil
		}
		text, err = s.storePDFText(ctx, r, f.Data)
	}
	if err != nil {
		return fmt.Errorf("read the text of a PDF: %w", err)
	}
	f.Extracted = text
	if int64(len(text)) > *room {
		f.Extracted = fmt.Sprintf("%s\n[cut here: the text has %d bytes]", wholeRunes([]byte(text[:*room])), len(text))
	}
	*room -= min(int64(len(text)), *room)
	return nil
}

// storePDFText extracts and stores the text of a PDF. If another process has stored one first, that one
// counts.
func (s *Store) storePDFText(ctx context.Context, r db.File, pdf []byte) (string, error) {
	text, err := s.PDFText(ctx, r.WorkspaceID, pdf)
	if err != nil {
		return "", err
	}
	if most := TextPerByte * max(len(pdf), minPDF); len(text) > most {
		text = fmt.Sprintf("%s\n[cut here: at most %d times the bytes of the PDF are stored]", wholeRunes([]byte(text[:most])), TextPerByte)
	}
	if err := s.fitsStorage(ctx, r.WorkspaceID, int64(len(text))); fault.From(err) != nil {
		text = noRoom
	} else if err != nil {
		return "", err
	}
	if err := s.q.FileTextPut(ctx, r.WorkspaceID, text, *r.UploadID); err != nil {
		return "", err
	}
	stored, err := s.q.FileTextGet(ctx, *r.UploadID)
	if errors.Is(err, pgx.ErrNoRows) { // the file was deleted meanwhile
		return text, nil
	}
	return stored, err
}

// PDFText extracts the text of a PDF: with a line before each page, and a last line in brackets if
// it is not complete or there is none.
func (s *Store) PDFText(ctx context.Context, workspace uuid.UUID, pdf []byte) (string, error) {
	release, err := s.parsers.Acquire(ctx, workspace)
	if err != nil {
		return "", err
	}
	defer release()
	return pdftext.Extract(ctx, pdf)
}
