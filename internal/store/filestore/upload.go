package filestore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/parley-server/parley/db"
	"github.com/parley-server/parley/internal/fault"
)

// Upload receives the bytes of a file at the signed address of its ticket: path and query of the
// request. length is -1 if it is unknown. Equal bytes sent again succeed and others are rejected;
// of concurrent uploads the first complete one counts. A sender may retry a broken upload.
func (s *Store) Upload(ctx context.Context, path, query string, length int64, body io.Reader) (File, error) {
	l, ok := s.verifyLink(http.MethodPut, path, query)
	if !ok {
		return File{}, notFound()
	}
	row, err := s.linkedFile(ctx, l)
	if err != nil {
		return File{}, err
	}
	switch Status(row.State) {
	case StatusRejected:
		return File{}, rejectionReason(StatusRejected, *row.Reason)
	case StatusReady:
		return s.compareBytes(row, body)
	}
	if length >= 0 && length != *row.Size {
		return File{}, s.rejectUpload(ctx, row, sizeDiffers(*row.Size, length))
	}
	if err := s.fitsStorage(ctx, row.WorkspaceID, *row.Size); err != nil {
		return File{}, err
	}
	got, err := s.receiveContent(ctx, body, *row.Size, func(head []byte) (string, error) {
		if why := judgeContent(row.Mime, sniffType(head), row.Unrestricted); why != "" {
			return "", refusal(why)
		}
		return row.Mime, nil
	})
	if err != nil {
		return File{}, s.recordFailure(ctx, row, err)
	}
	return s.finishUpload(ctx, row, got)
}

// finishUpload stores an upload that matches its declaration as a file. It also finishes after the
// sender has disconnected.
func (s *Store) finishUpload(ctx context.Context, row db.File, got received) (File, error) {
	ctx, cancel := shortContext(context.WithoutCancel(ctx))
	defer cancel()
	stored := false
	defer func() {
		if !stored {
			s.dropObject(ctx, got.upload)
		}
	}()
	switch {
	case row.Size != nil && got.size != *row.Size:
		return File{}, s.rejectUpload(ctx, row, sizeDiffers(*row.Size, got.size))
	case row.Sha256 != nil && !bytes.Equal(got.sha256, row.Sha256):
		return File{}, s.rejectUpload(ctx, row, fmt.Sprintf("The file's SHA-256 is %x, and %x was declared.", got.sha256, row.Sha256))
	}
	n, err := s.q.FileReady(ctx, db.FileReadyParams{UploadID: got.upload, Mime: got.mime, Size: got.size, Sha256: got.sha256,
		WorkspaceID: row.WorkspaceID, ID: row.ID})
	if full := storageError(err); full != nil {
		return File{}, full
	}
	if err != nil {
		return File{}, fmt.Errorf("finish file: %w", err)
	}
	stored = n == 1
	now, err := s.fileRow(ctx, row.WorkspaceID, row.ID)
	if err != nil {
		return File{}, err
	}
	if !stored && (now.State != string(StatusReady) || !bytes.Equal(now.Sha256, got.sha256)) {
		return File{}, rejectionReason(Status(now.State), "Another upload with other bytes was complete before this one.")
	}
	return fileOf(now, now.CreatedAt), nil
}

// compareBytes compares bytes that are sent again with the stored ones.
func (s *Store) compareBytes(row db.File, body io.Reader) (File, error) {
	_, sum, err := hashChunks(body, *row.Size, func(int, []byte) error { return nil })
	if _, broke := errors.AsType[errRead](err); broke {
		return File{}, brokenOff()
	}
	if err != nil || !bytes.Equal(sum, row.Sha256) {
		return File{}, rejectionReason(StatusReady, "The file is there already, with other bytes. Ask for a new ticket.")
	}
	return fileOf(row, row.CreatedAt), nil
}

// recordFailure records a failed upload. Errors that a repeated upload can correct do not reject
// the file.
func (s *Store) recordFailure(ctx context.Context, row db.File, err error) error {
	if why, ok := errors.AsType[refusal](err); ok {
		return s.rejectUpload(ctx, row, string(why))
	}
	if errors.Is(err, errTooLong) {
		return s.rejectUpload(ctx, row, fmt.Sprintf("The file has more than the %d bytes that were declared.", *row.Size))
	}
	if _, broke := errors.AsType[errRead](err); broke {
		return brokenOff()
	}
	return err
}

// rejectUpload records that a file differs from its declaration, and returns the error for it.
func (s *Store) rejectUpload(ctx context.Context, row db.File, reason string) error {
	n, err := s.q.FileReject(ctx, string(fault.FileRejected), reason, row.WorkspaceID, row.ID)
	if err != nil {
		return fmt.Errorf("reject file: %w", err)
	}
	if n == 0 { // another upload was complete first
		return rejectionReason(StatusReady, reason)
	}
	return rejectionReason(StatusRejected, reason)
}

func rejectionReason(status Status, reason string) error {
	return &fault.Error{Code: fault.FileRejected, Message: reason, Detail: fault.Detail{Status: string(status)}}
}

func brokenOff() error {
	return fault.New(fault.InvalidRequestBody, "The body broke off, or came too slowly. Send it again.")
}

func sizeDiffers(declared, got int64) string {
	return fmt.Sprintf("The file has %d bytes, and %d were declared.", got, declared)
}
