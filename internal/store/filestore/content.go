package filestore

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/google/uuid"

	"github.com/parley-server/parley/db"
)

// Content is the readable content of a file.
type Content struct {
	Filename string
	MIME     string
	Size     int64
	SHA256   string // hexadecimal
	ModTime  time.Time

	q      *db.Queries
	upload uuid.UUID
}

// Open opens a file by its signed address: path and query of the request. An unsigned address and a
// removed file are FILE_NOT_FOUND.
func (s *Store) Open(ctx context.Context, path, query string) (Content, error) {
	l, ok := s.verifyLink(http.MethodGet, path, query)
	if !ok {
		return Content{}, notFound()
	}
	row, err := s.linkedFile(ctx, l)
	if err != nil {
		return Content{}, err
	}
	if row.State != string(StatusReady) {
		return Content{}, notFound()
	}
	return contentOf(s.q, row), nil
}

func contentOf(q *db.Queries, row db.File) Content {
	return Content{
		Filename: row.Filename, MIME: row.Mime, Size: *row.Size, SHA256: hex.EncodeToString(row.Sha256), ModTime: row.ReadyAt.UTC(),
		q: q, upload: *row.UploadID,
	}
}

// Reader reads the file until ctx ends. It holds one chunk and no connection.
func (c Content) Reader(ctx context.Context) io.ReadSeeker { return &reader{Content: c, ctx: ctx} }

type reader struct {
	Content
	ctx   context.Context
	at    int64
	chunk []byte // rest of the chunk at at
}

// Read implements io.Reader.
func (r *reader) Read(p []byte) (int, error) {
	if r.at >= r.Size {
		return 0, io.EOF
	}
	if len(r.chunk) == 0 {
		ctx, cancel := shortContext(r.ctx)
		defer cancel()
		chunk, err := r.q.ChunkGet(ctx, r.upload, int32(r.at/chunkSize))
		if err != nil {
			return 0, fmt.Errorf("read chunk: %w", err)
		}
		from := r.at % chunkSize
		if from >= int64(len(chunk)) {
			return 0, errors.New("a chunk of a file is too short")
		}
		r.chunk = chunk[from:]
	}
	n := copy(p, r.chunk)
	r.chunk = r.chunk[n:]
	r.at += int64(n)
	return n, nil
}

// Seek implements io.Seeker.
func (r *reader) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekCurrent:
		offset += r.at
	case io.SeekEnd:
		offset += r.Size
	}
	if offset < 0 {
		return 0, errors.New("seek before the beginning of a file")
	}
	if offset != r.at {
		r.at, r.chunk = offset, nil
	}
	return offset, nil
}
