package workdir

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
)

// Folder is a session's folder on this machine. Only one call at a time may use it.
type Folder struct {
	s       *Store
	claim   Claim
	dir     string
	version int64            // version in the database
	saved   map[string]known // rows of that version, by path
}

// Saved is the result of a save.
type Saved struct {
	Files   int   // names
	Bytes   int64 // total size of the files
	Changed int   // names that are new, changed or removed since the last save
	Skipped []string
}

// saveTries is how often a save is tried: it restarts each time another process has removed a blob,
// or an earlier save turns out to be stored although its response was lost.
const saveTries = 5

var (
	errMissing = errors.New("what was to be named is not there any more")
	errStale   = errors.New("the folder was saved by a call whose answer was lost")
)

// Save stores the changes since Restore or the last Save, completely or not at all. Nothing may
// write into the folder meanwhile. It fails with ErrFenced if the claim is too old, and with a
// *Refusal if a limit is exceeded.
func (f *Folder) Save(ctx context.Context) (Saved, error) {
	root, err := openRoot(f.dir)
	if err != nil {
		return Saved{}, err
	}
	defer root.Close()
	w := &walk{tree: &tree{top: root}, files: f.s.opt.Files}
	defer w.Close()
	if err := w.walkFolder(ctx); err != nil {
		return Saved{}, err
	}
	if err := f.checkLimits(ctx, w); err != nil {
		return Saved{}, err
	}
	s := &send{f: f, w: w}
	if err := s.sendFiles(ctx, f.filesToRead(w.found)); err != nil {
		return Saved{}, err
	}
	changed, err := f.nameContents(ctx, s)
	if err != nil {
		return Saved{}, err
	}
	f.saved = w.found
	dropRecentTimes(w.found)
	return Saved{Files: len(w.found), Bytes: bytesOf(w.found), Changed: changed, Skipped: w.listSkipped()}, nil
}

// checkLimits rejects a folder that exceeds a limit, before any of it is read.
func (f *Folder) checkLimits(ctx context.Context, w *walk) error {
	if err := w.checkSizes(f.s.opt.Quota); err != nil {
		return err
	}
	more := w.bytes - bytesOf(f.saved)
	if more <= 0 {
		return nil
	}
	now, err := f.s.q.StorageOf(ctx, f.claim.Workspace)
	if err != nil {
		return fmt.Errorf("read what a workspace has stored: %w", err)
	}
	if used := now.Files + now.Folders + now.Documents; now.Quota > 0 && used+more > now.Quota {
		return storageFull(
			fmt.Sprintf("The workspace has %s in files, folders and documents, and this folder has %s more. Its storage quota is %s.",
				describeSize(used), describeSize(more), describeSize(now.Quota)))
	}
	return nil
}

// filesToRead lists the files that may have changed since the last save, and copies the hashes of
// the others.
func (f *Folder) filesToRead(found map[string]known) (paths []string) {
	for path, k := range found {
		if k.kind != File {
			continue
		}
		if was, ok := f.saved[path]; ok && was.kind == File && was.stamp == k.stamp && k.stamp != (stamp{}) {
			k.sum = was.sum
			found[path] = k
			continue
		}
		paths = append(paths, path)
	}
	slices.Sort(paths)
	return paths
}

// nameContents stores the found rows as the folder in the database. If blobs were removed
// meanwhile, it first sends them again.
func (f *Folder) nameContents(ctx context.Context, s *send) (changed int, err error) {
	for range saveTries {
		var missing map[sum]bool
		changed, missing, err = f.commitChanges(ctx, s.w.found)
		switch {
		case errors.Is(err, errStale):
			if reload := f.reloadRows(ctx); reload != nil {
				return 0, reload
			}
		case errors.Is(err, errMissing):
			var again []string
			for path, k := range s.w.found {
				if k.kind == File && missing[k.sum] {
					again = append(again, path)
				}
			}
			slices.Sort(again)
			if err := s.sendFiles(ctx, again); err != nil {
				return 0, err
			}
		default:
			return changed, err
		}
	}
	return 0, fmt.Errorf("save a folder: %w", err)
}

// reloadRows reads the rows in the database.
func (f *Folder) reloadRows(ctx context.Context) error {
	version, err := f.s.q.WorkdirVersion(ctx, f.claim.Workspace, f.claim.Session)
	if err != nil {
		return fmt.Errorf("read the version of a folder: %w", err)
	}
	saved, err := f.s.readRows(ctx, f.claim.Workspace, f.claim.Session)
	if err != nil {
		return err
	}
	f.version, f.saved = version, saved
	return nil
}

// recordStats records the current stamps of all restored files on disk.
func (f *Folder) recordStats(t *tree) error {
	for _, path := range slices.Sorted(maps.Keys(f.saved)) {
		dir, name, err := t.findParent(path)
		if err != nil {
			return fmt.Errorf("look at what was restored: %w", err)
		}
		info, err := dir.Lstat(name)
		if err != nil {
			return fmt.Errorf("look at what was restored: %w", err)
		}
		k := f.saved[path]
		k.stamp = stampOf(info)
		f.saved[path] = k
	}
	return nil
}

func bytesOf(all map[string]known) (n int64) {
	for k := range maps.Values(all) {
		if k.kind == File {
			n += k.size
		}
	}
	return n
}
