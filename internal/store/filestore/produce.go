package filestore

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/parley-server/parley/db"
	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/fault"
)

// Produce stores a file that a tool call makes in a turn. A second call for the same tool call
// stores nothing and returns the stored file. With mime "" it detects the type. A file that is not
// accepted is FILE_REJECTED or FILE_TOO_LARGE.
func (s *Store) Produce(ctx context.Context, workspace, session, turn uuid.UUID, call, filename, mime string,
	r io.Reader) (event.File, error) {
	if f, err := s.producedFile(ctx, workspace, turn, call); !errors.Is(err, pgx.ErrNoRows) {
		return f, err
	}
	filename = Name(filename)
	declared := normalizeType(mime)
	if mime != "" && declared == "" {
		return event.File{}, rejectionReason(StatusRejected, "The type is no media type, like text/csv.")
	}
	if f := fault.From(checkPermitted(filename, declared, true)); f != nil {
		return event.File{}, rejectionReason(StatusRejected, f.Message)
	}
	n, err := s.q.FilesCount(ctx, turn)
	if err != nil {
		return event.File{}, fmt.Errorf("count produced files: %w", err)
	}
	if n >= MaxProduced {
		return event.File{}, rejectionReason(StatusRejected, fmt.Sprintf("A turn produces at most %d files.", MaxProduced))
	}
	if err := s.fitsStorage(ctx, workspace, 0); err != nil {
		return event.File{}, err
	}
	got, err := s.receiveContent(ctx, r, MaxSize, func(head []byte) (string, error) {
		if declared == "" {
			declared = Type(filename, head)
		}
		if why := judgeContent(declared, sniffType(head), true); why != "" {
			return "", refusal(why)
		}
		return declared, nil
	})
	switch why, refused := errors.AsType[refusal](err); {
	case refused:
		return event.File{}, rejectionReason(StatusRejected, string(why))
	case errors.Is(err, errTooLong):
		return event.File{}, fault.New(fault.FileTooLarge, "A file has at most %d bytes.", MaxSize)
	case err != nil:
		return event.File{}, err
	}
	row, err := s.q.FileProduce(ctx, db.FileProduceParams{
		ID: uuid.Must(uuid.NewV7()), WorkspaceID: workspace, Filename: filename, Mime: got.mime, Size: got.size, Sha256: got.sha256,
		UploadID: got.upload, SessionID: session, TurnID: turn, CallID: call,
	})
	if err != nil {
		s.dropObject(ctx, got.upload)
	}
	if errors.Is(err, pgx.ErrNoRows) { // another replica ran the same call first
		f, err := s.producedFile(ctx, workspace, turn, call)
		if errors.Is(err, pgx.ErrNoRows) {
			return f, rejectionReason(StatusRejected, "The session is not there any more.")
		}
		return f, err
	}
	if full := storageError(err); full != nil {
		return event.File{}, full
	}
	if err != nil {
		return event.File{}, fmt.Errorf("store produced file: %w", err)
	}
	now, err := s.databaseTime(ctx, s.q)
	f, _ := s.shownFile(row, now)
	return f, err
}

// producedFile returns the file that a call has already produced.
func (s *Store) producedFile(ctx context.Context, workspace, turn uuid.UUID, call string) (event.File, error) {
	row, err := s.q.FileByCall(ctx, workspace, turn, call)
	if err != nil {
		return event.File{}, fmt.Errorf("read produced file: %w", err)
	}
	if row.State != string(StatusReady) {
		return event.File{}, notFound() // it was deleted since
	}
	now, err := s.databaseTime(ctx, s.q)
	f, _ := s.shownFile(row, now)
	return f, err
}
