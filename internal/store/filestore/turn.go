package filestore

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/parley-server/parley/db"
	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/fault"
)

// Rejected is a file that a message names but does not include.
type Rejected struct {
	FileID   uuid.UUID `json:"file_id"`
	Filename string    `json:"filename"` // "" if the file does not exist
	Code     string    `json:"code"`
	Reason   string    `json:"reason"`
}

// The reasons why a message does not include a file, besides FILE_NOT_FOUND, FILE_REJECTED and
// FILE_EXPIRED.
const (
	codeNotReady = "FILE_NOT_READY"
	codeTooMany  = "TOO_MANY_FILES"
)

// Attach adds files to the message of a turn, in the transaction that stores it. It returns the
// files that it rejects; the message is stored nevertheless.
func (s *Store) Attach(ctx context.Context, tx pgx.Tx, workspace, turn uuid.UUID, ids []uuid.UUID) (rejected []Rejected, err error) {
	q := s.q.WithTx(tx)
	rows, err := q.FilesAttachable(ctx, workspace, ids)
	if err != nil {
		return nil, fmt.Errorf("read files: %w", err)
	}
	now, err := s.databaseTime(ctx, q)
	if err != nil {
		return nil, err
	}
	files := make(map[uuid.UUID]File, len(rows))
	for _, r := range rows {
		files[r.ID] = fileOf(r, now)
	}
	seen, attached := make(map[uuid.UUID]bool), int32(0)
	for _, id := range ids {
		if seen[id] {
			continue
		}
		seen[id] = true
		f, known := files[id]
		if no := unfitReason(f, known, int(attached)); no != nil {
			no.FileID, no.Filename = id, f.Filename
			rejected = append(rejected, *no)
			continue
		}
		if err := q.TurnFilePut(ctx, turn, id, workspace, attached); err != nil {
			return nil, fmt.Errorf("attach file: %w", err)
		}
		attached++
	}
	return rejected, nil
}

// unfitReason returns why a file cannot be attached to a message that already has this many, nil if
// it can.
func unfitReason(f File, known bool, attached int) *Rejected {
	switch {
	case !known:
		return &Rejected{Code: string(fault.FileNotFound), Reason: "The file does not exist."}
	case f.Status == StatusRejected:
		return &Rejected{Code: string(fault.FileRejected), Reason: f.Error.Reason}
	case f.Status == StatusExpired:
		return &Rejected{Code: string(fault.FileExpired), Reason: "The file was not sent in time."}
	case f.Status != StatusReady:
		return &Rejected{Code: codeNotReady, Reason: "The file is not here yet: it is " + string(f.Status) + "."}
	case attached >= MaxAttached:
		return &Rejected{Code: codeTooMany, Reason: fmt.Sprintf("A message has at most %d files.", MaxAttached)}
	}
	return nil
}

// Produced lists the files that a turn has produced, each with a fresh address. It may be called
// inside a transaction.
func (s *Store) Produced(ctx context.Context, tx db.DBTX, turn uuid.UUID) ([]event.File, error) {
	q := db.New(tx)
	rows, err := q.FilesOfTurn(ctx, turn)
	if err != nil {
		return nil, fmt.Errorf("read produced files: %w", err)
	}
	if len(rows) == 0 {
		return nil, nil
	}
	now, err := s.databaseTime(ctx, q)
	if err != nil {
		return nil, err
	}
	files := make([]event.File, len(rows))
	for i, r := range rows {
		files[i], _ = s.shownFile(r, now)
	}
	return files, nil
}

// Files are the files of one turn: those in its message, and those it produced.
type Files struct{ In, Out []event.File }

// OfTurns lists the files of turns, each with a fresh address. The map has no turns without files
// and no deleted files.
func (s *Store) OfTurns(ctx context.Context, workspace uuid.UUID, turns []uuid.UUID) (map[uuid.UUID]Files, error) {
	in, err := s.q.FilesIn(ctx, workspace, turns)
	if err != nil {
		return nil, fmt.Errorf("read attached files: %w", err)
	}
	out, err := s.q.FilesOut(ctx, workspace, turns)
	if err != nil {
		return nil, fmt.Errorf("read produced files: %w", err)
	}
	if len(in)+len(out) == 0 {
		return nil, nil
	}
	now, err := s.databaseTime(ctx, s.q)
	if err != nil {
		return nil, err
	}
	of := make(map[uuid.UUID]Files)
	for _, r := range in {
		f, _ := s.shownFile(r.File, now)
		t := of[r.Turn]
		t.In = append(t.In, f)
		of[r.Turn] = t
	}
	for _, r := range out {
		f, _ := s.shownFile(r, now)
		t := of[*r.TurnID]
		t.Out = append(t.Out, f)
		of[*r.TurnID] = t
	}
	return of, nil
}
