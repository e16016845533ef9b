package workdir

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// Restore fills an empty directory with the last save, and prevents older claims from saving from
// now on. It fails with ErrFenced if a newer claim already has the folder, or the session is
// erased. On an error the directory may be filled in part.
func (s *Store) Restore(ctx context.Context, c Claim, dir string) (*Folder, error) {
	version, err := s.q.WorkdirTake(ctx, c.Epoch, c.Workspace, c.Session)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, ErrFenced
	}
	if err != nil {
		return nil, fmt.Errorf("take a folder: %w", err)
	}
	f := &Folder{s: s, claim: c, dir: dir, version: version}
	if f.saved, err = s.readRows(ctx, c.Workspace, c.Session); err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("open the folder: %w", err)
	}
	defer root.Close()
	t := &tree{top: root}
	defer t.Close()
	if err := (&fill{s: s, tree: t, meter: s.newMeter(c.Session, false)}).writeAll(ctx, f.saved); err != nil {
		return nil, err
	}
	if s.opt.Give != nil {
		if err := s.opt.Give(dir); err != nil {
			return nil, fmt.Errorf("hand a folder over: %w", err)
		}
	}
	if err := f.recordStats(t); err != nil {
		return nil, err
	}
	dropRecentTimes(f.saved)
	return f, nil
}

// fill writes a saved folder to disk.
type fill struct {
	s *Store
	*tree
	*meter

	small []string // paths of files of one chunk, which are read together
	held  int64    // their size in bytes
}

// writeAll writes everything, links last, so that no file is ever written through one.
func (w *fill) writeAll(ctx context.Context, saved map[string]known) error {
	paths := slices.Sorted(maps.Keys(saved)) // a folder comes before its contents
	for _, path := range paths {
		if k := saved[path]; k.kind == File {
			w.expectBytes(k.size)
		}
	}
	for _, path := range paths {
		if err := w.writePath(ctx, path, saved); err != nil {
			return fmt.Errorf("restore %s: %w", quotePath(path), err)
		}
	}
	if err := w.writeSmall(ctx, saved); err != nil {
		return fmt.Errorf("restore files: %w", err)
	}
	for _, path := range paths {
		if k := saved[path]; k.kind == Symlink {
			if err := w.createLink(path, k.target); err != nil {
				return fmt.Errorf("restore a link: %w", err)
			}
		}
	}
	w.logSummary(ctx)
	return nil
}

func (w *fill) writePath(ctx context.Context, path string, saved map[string]known) error {
	switch k := saved[path]; {
	case k.kind == Dir:
		dir, name, err := w.findParent(path)
		if err != nil {
			return err
		}
		if err := dir.Mkdir(name, 0o755); err != nil {
			return err
		}
		return dir.Chmod(name, 0o755) // independent of this process's umask
	case k.kind == File && k.size > chunkSize:
		return w.writeLarge(ctx, path, k)
	case k.kind == File:
		w.small = append(w.small, path)
		if w.held += k.size; w.held >= batchBytes || len(w.small) >= batchFiles {
			return w.writeSmall(ctx, saved)
		}
	}
	return nil
}

func (w *fill) createLink(path, target string) error {
	dir, name, err := w.findParent(path)
	if err != nil {
		return err
	}
	return dir.Symlink(target, name)
}

func (w *fill) writeLarge(ctx context.Context, path string, k known) error {
	f, err := w.createFile(path, k)
	if err != nil {
		return err
	}
	for chunk, err := range w.s.readChunks(ctx, k) {
		if err == nil {
			_, err = f.Write(chunk)
		}
		if err != nil {
			f.Close()
			return err
		}
		w.addMoved(ctx, 0, int64(len(chunk)))
	}
	w.addMoved(ctx, 1, 0)
	return f.Close()
}

// writeSmall writes the collected small files.
func (w *fill) writeSmall(ctx context.Context, saved map[string]known) error {
	ids := make([]uuid.UUID, 0, len(w.small))
	for _, path := range w.small {
		ids = append(ids, saved[path].blob)
	}
	rows, err := w.s.q.WorkChunksFirst(ctx, ids)
	if err != nil {
		return fmt.Errorf("read files: %w", err)
	}
	data := make(map[uuid.UUID][]byte, len(rows))
	for _, r := range rows {
		data[r.BlobID] = r.Data
	}
	for _, path := range w.small {
		k := saved[path]
		if err := k.checkContent(data[k.blob]); err != nil {
			return err
		}
		f, err := w.createFile(path, k)
		if err != nil {
			return err
		}
		_, err = f.Write(data[k.blob])
		if err = errors.Join(err, f.Close()); err != nil {
			return err
		}
		w.addMoved(ctx, 1, k.size)
	}
	w.small, w.held = w.small[:0], 0
	return nil
}

// createFile makes a file that does not exist yet.
func (w *fill) createFile(path string, k known) (*os.File, error) {
	mode := fs.FileMode(0o644)
	if k.executable {
		mode = 0o755
	}
	dir, name, err := w.findParent(path)
	if err != nil {
		return nil, err
	}
	f, err := dir.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return nil, err
	}
	if err := f.Chmod(mode); err != nil { // independent of this process's umask
		f.Close()
		return nil, err
	}
	return f, nil
}
