package workdir

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/pgerr"
)

const (
	batchBytes = 1 << 20
	batchFiles = 256
)

// send reads files and stores those contents that the database lacks. They have no names yet: the
// contents sent by an interrupted save are removed later.
type send struct {
	f *Folder
	w *walk
	*meter

	small []content // files of one chunk, which are sent together
	held  int       // bytes in small
	buf   []byte
}

type content struct {
	sum  sum
	data []byte
}

// sendFiles sends files, and records their hashes in the result of the walk.
func (s *send) sendFiles(ctx context.Context, paths []string) error {
	s.meter = s.f.s.newMeter(s.f.claim.Session, true)
	for _, path := range paths {
		s.expectBytes(s.w.found[path].size)
	}
	for _, path := range paths {
		if err := s.sendFile(ctx, path); err != nil {
			return err
		}
	}
	if err := s.sendSmall(ctx); err != nil {
		return err
	}
	s.logSummary(ctx)
	return nil
}

func (s *send) sendFile(ctx context.Context, path string) error {
	f, info, err := s.w.openFile(path)
	if errors.Is(err, fs.ErrPermission) {
		delete(s.w.found, path)
		s.w.addSkipped(path, "not readable")
		return nil
	}
	if err != nil {
		return fmt.Errorf("open a file of the folder: %w", err)
	}
	defer f.Close()
	k := s.w.found[path]
	k.stamp, k.size = stampOf(info), info.Size()
	if k.size > MaxFile {
		return tooLarge([]sized{{path, k.size}})
	}
	if k.size > chunkSize {
		err = s.sendLarge(ctx, f, &k)
	} else {
		err = s.sendChunk(ctx, f, &k)
	}
	if err != nil {
		return err
	}
	s.w.found[path] = k
	s.addMoved(ctx, 1, 0)
	return nil
}

// sendChunk reads a file of one chunk.
func (s *send) sendChunk(ctx context.Context, r io.Reader, k *known) error {
	data := make([]byte, k.size)
	if _, err := io.ReadFull(r, data); err != nil {
		return fmt.Errorf("read a file of the folder: %w", err)
	}
	k.sum = sha256.Sum256(data)
	s.small = append(s.small, content{k.sum, data})
	if s.held += len(data); s.held < batchBytes && len(s.small) < batchFiles {
		return nil
	}
	return s.sendSmall(ctx)
}

// sendSmall sends the collected small files, each content once.
func (s *send) sendSmall(ctx context.Context) error {
	slices.SortFunc(s.small, func(a, b content) int { return bytes.Compare(a.sum[:], b.sum[:]) })
	s.small = slices.CompactFunc(s.small, func(a, b content) bool { return a.sum == b.sum })
	sums := make([]sum, len(s.small))
	for i, c := range s.small {
		sums[i] = c.sum
	}
	there, err := s.storedBlobs(ctx, sums)
	if err != nil {
		return err
	}
	var ids []uuid.UUID
	var names, chunks [][]byte
	for i, c := range s.small {
		if !there[c.sum] {
			ids, names, chunks = append(ids, uuid.Must(uuid.NewV7())), append(names, sums[i][:]), append(chunks, c.data)
		}
	}
	if len(ids) > 0 {
		if err := s.f.s.q.WorkBlobsPut(ctx, s.f.claim.Workspace, ids, chunks, names); err != nil {
			return fmt.Errorf("store files: %w", err)
		}
	}
	s.addMoved(ctx, 0, int64(s.held))
	clear(s.small)
	s.small, s.held = s.small[:0], 0
	return nil
}

// storedBlobs returns the blobs that are already stored, and protects them from removal before they
// are named.
func (s *send) storedBlobs(ctx context.Context, sums []sum) (map[sum]bool, error) {
	there := make(map[sum]bool, len(sums))
	if len(sums) == 0 {
		return there, nil
	}
	q, workspace, list := s.f.s.q, s.f.claim.Workspace, sumsOf(sums)
	if err := q.WorkBlobsTouch(ctx, workspace, list); err != nil {
		return nil, fmt.Errorf("keep blobs: %w", err)
	}
	list, err := q.WorkBlobsThere(ctx, workspace, list)
	if err != nil {
		return nil, fmt.Errorf("look for blobs: %w", err)
	}
	for _, b := range list {
		there[sum(b)] = true
	}
	return there, nil
}

// sendLarge reads a file of several chunks, and reads it again to send it if it is not stored.
func (s *send) sendLarge(ctx context.Context, f *os.File, k *known) (err error) {
	if k.sum, err = s.hashChunks(f, k.size, func(int, []byte) error { return ctx.Err() }); err != nil {
		return err
	}
	there, err := s.storedBlobs(ctx, []sum{k.sum})
	if err != nil {
		return err
	}
	if there[k.sum] {
		s.addMoved(ctx, 0, k.size)
		return nil
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return fmt.Errorf("read a file of the folder: %w", err)
	}
	k.sum, err = s.sendBlob(ctx, f, k.size)
	return err
}

// sendBlob sends a file chunk by chunk. Its name is the hash of the sent bytes, so it always
// matches them.
func (s *send) sendBlob(ctx context.Context, r io.Reader, size int64) (sum, error) {
	q, id := s.f.s.q, uuid.Must(uuid.NewV7())
	if err := q.WorkBlobBegin(ctx, id, s.f.claim.Workspace); err != nil {
		return sum{}, fmt.Errorf("begin a blob: %w", err)
	}
	name, err := s.hashChunks(r, size, func(n int, chunk []byte) error {
		rows, err := q.WorkChunkPut(ctx, id, int32(n), chunk)
		if err == nil && rows == 0 {
			err = errors.New("the blob was given up")
		}
		if err != nil {
			return fmt.Errorf("store a chunk: %w", err)
		}
		s.addMoved(ctx, 0, int64(len(chunk)))
		return nil
	})
	if err != nil {
		return name, err
	}
	rows, err := q.WorkBlobEnd(ctx, name[:], size, id)
	if pgerr.IsUniqueViolation(err) { // another save was first
		rows, err = 1, q.WorkBlobDrop(ctx, id)
	}
	if err == nil && rows == 0 {
		err = errors.New("the blob was given up")
	}
	if err != nil {
		return name, fmt.Errorf("store a blob: %w", err)
	}
	return name, nil
}

// hashChunks hashes size bytes, one chunk at a time through one buffer.
func (s *send) hashChunks(r io.Reader, size int64, each func(n int, chunk []byte) error) (name sum, err error) {
	if s.buf == nil {
		s.buf = make([]byte, chunkSize)
	}
	hash := sha256.New()
	for n := 0; size > 0; n++ {
		chunk := s.buf[:min(size, chunkSize)]
		if _, err := io.ReadFull(r, chunk); err != nil {
			return name, fmt.Errorf("read a file of the folder: %w", err)
		}
		hash.Write(chunk)
		if err := each(n, chunk); err != nil {
			return name, err
		}
		size -= int64(len(chunk))
	}
	return sum(hash.Sum(nil)), nil
}
