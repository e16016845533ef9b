package filestore

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"

	"github.com/google/uuid"
)

// received describes the content of an upload.
type received struct {
	upload uuid.UUID
	mime   string // result of check
	size   int64
	sha256 []byte
}

// errRead wraps a failure of the sender, not of the server.
type errRead struct{ error }

func (e errRead) Unwrap() error { return e.error }

// errTooLong is the error for more bytes than the file's limit.
var errTooLong = errors.New("there are more bytes than the file may have")

// refusal is the reason why the bytes of a file are rejected, in a sentence.
type refusal string

func (r refusal) Error() string { return string(r) }

// receiveContent stores up to limit bytes of r as an upload. check receives their beginning and
// returns its type, or rejects it. On an error nothing is stored.
func (s *Store) receiveContent(ctx context.Context, r io.Reader, limit int64, check func(head []byte) (mime string,
	err error)) (got received, err error) {
	got.upload = uuid.Must(uuid.NewV7())
	begin, cancel := shortContext(ctx)
	defer cancel()
	if err := s.q.UploadBegin(begin, got.upload); err != nil {
		return got, fmt.Errorf("begin upload: %w", err)
	}
	defer func() {
		if err != nil {
			s.dropObject(ctx, got.upload)
		}
	}()
	got.size, got.sha256, err = hashChunks(r, limit, func(n int, chunk []byte) (err error) {
		if n == 0 {
			if got.mime, err = check(chunk); err != nil {
				return err
			}
		}
		put, cancel := shortContext(ctx)
		defer cancel()
		rows, err := s.q.ChunkPut(put, got.upload, int32(n), chunk)
		if err == nil && rows == 0 {
			err = errors.New("the upload was given up")
		}
		if err != nil {
			return fmt.Errorf("store chunk: %w", err)
		}
		return nil
	})
	return got, err
}

// hashChunks reads r to its end, through one buffer, and counts and hashes its bytes. An empty file
// has one empty chunk.
func hashChunks(r io.Reader, limit int64, each func(n int, chunk []byte) error) (size int64, sum []byte, err error) {
	hash := sha256.New()
	buf := make([]byte, chunkSize)
	for n := 0; ; n++ {
		k, err := fillBuffer(r, buf)
		if err != nil && err != io.EOF {
			return size, nil, errRead{err}
		}
		if size += int64(k); size > limit {
			return size, nil, errTooLong
		}
		hash.Write(buf[:k])
		if k > 0 || n == 0 {
			if err := each(n, buf[:k]); err != nil {
				return size, nil, err
			}
		}
		if err == io.EOF {
			return size, hash.Sum(nil), nil
		}
	}
}

// fillBuffer is io.ReadFull for readers that can end because the sender broke off: that is
// io.ErrUnexpectedEOF, and must not look like the last chunk.
func fillBuffer(r io.Reader, buf []byte) (n int, err error) {
	for n < len(buf) && err == nil {
		var k int
		k, err = r.Read(buf[n:])
		n += k
	}
	return n, err
}

// dropObject removes a failed upload, also after the caller has disconnected. If it fails, Run
// removes the upload.
func (s *Store) dropObject(ctx context.Context, upload uuid.UUID) {
	ctx, cancel := shortContext(context.WithoutCancel(ctx))
	defer cancel()
	if err := s.q.UploadDrop(ctx, upload); err != nil {
		s.log.WarnContext(ctx, "remove an upload", "upload", upload, "err", err)
	}
}
