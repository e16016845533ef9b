package workdir

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// Mirror is a copy of a session's folder that another machine changes: Pack writes the changes as a
// tar archive, and Unpack applies them to the other copy. A removed name is a character device 0, 0
// in the archive, as in overlayfs. Only one call at a time may use a Mirror.
type Mirror struct {
	dir   string
	known map[string]known // the names when Remember was called
}

// NewMirror returns a Mirror that remembers nothing, so everything in dir is a change.
func NewMirror(dir string) *Mirror { return &Mirror{dir: dir} }

// Remember makes the current content the one that later changes are compared with. Like Restore, it
// follows a change of the owner.
func (m *Mirror) Remember(ctx context.Context) error {
	c, err := m.Changes(ctx)
	if err != nil {
		return err
	}
	m.known = c.found
	dropRecentTimes(m.known)
	return nil
}

// Changes are the differences of a Mirror from the remembered content.
type Changes struct {
	Skipped []string // names that are not in the archive, with the reasons, as in Saved
	dir     string
	found   map[string]known
	gone    []string
	dirs    []string
	files   []string
	links   []string
}

// Changes finds the changes. It fails with a *Refusal if the folder exceeds a limit of Save.
func (m *Mirror) Changes(ctx context.Context) (*Changes, error) {
	root, err := openRoot(m.dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	w := &walk{tree: &tree{top: root}, files: MaxFiles}
	defer w.Close()
	if err := w.walkFolder(ctx); err != nil {
		return nil, err
	}
	if err := w.checkSizes(Quota); err != nil {
		return nil, err
	}
	c := &Changes{Skipped: w.listSkipped(), dir: m.dir, found: w.found}
	c.listGone(m.known)
	for _, path := range slices.Sorted(maps.Keys(w.found)) {
		is := w.found[path]
		was, existed := m.known[path]
		existed = existed && was.kind == is.kind
		switch {
		case is.kind == Dir && !existed:
			c.dirs = append(c.dirs, path)
		case is.kind == File && !(existed && was.stamp == is.stamp && is.stamp != (stamp{})):
			c.files = append(c.files, path)
		case is.kind == Symlink && !(existed && was.target == is.target):
			c.links = append(c.links, path)
		}
	}
	return c, nil
}

// listGone lists the remembered names that do not exist any more, or have another kind. A name
// below a listed one is not listed.
func (c *Changes) listGone(known map[string]known) {
	top := ""
	for _, path := range slices.Sorted(maps.Keys(known)) {
		if is, ok := c.found[path]; ok && is.kind == known[path].kind {
			continue
		}
		if top != "" && strings.HasPrefix(path, top+"/") {
			continue
		}
		top = path
		c.gone = append(c.gone, path)
	}
}

// Pack writes the changes: a directory before its contents, and links last, so that no file is
// written through one. Nothing may write into the folder meanwhile.
func (c *Changes) Pack(ctx context.Context, to io.Writer) error {
	root, err := openRoot(c.dir)
	if err != nil {
		return err
	}
	defer root.Close()
	w := &walk{tree: &tree{top: root}}
	defer w.Close()
	archive := tar.NewWriter(to)
	for _, path := range c.gone {
		if err := archive.WriteHeader(&tar.Header{Name: path, Typeflag: tar.TypeChar, Mode: 0o644}); err != nil {
			return fmt.Errorf("pack %s: %w", quotePath(path), err)
		}
	}
	for _, path := range slices.Concat(c.dirs, c.files, c.links) {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := c.packPath(archive, w, path); err != nil {
			return fmt.Errorf("pack %s: %w", quotePath(path), err)
		}
	}
	return archive.Close()
}

func (c *Changes) packPath(archive *tar.Writer, w *walk, path string) error {
	switch k := c.found[path]; k.kind {
	case Dir:
		return archive.WriteHeader(&tar.Header{Name: path, Typeflag: tar.TypeDir, Mode: 0o755})
	case Symlink:
		return archive.WriteHeader(&tar.Header{Name: path, Typeflag: tar.TypeSymlink, Linkname: k.target, Mode: 0o777})
	default:
		return packFile(archive, w, path, k)
	}
}

func packFile(archive *tar.Writer, w *walk, path string, k known) error {
	f, info, err := w.openFile(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if info.Size() != k.size {
		return errors.New("it changed while it was read")
	}
	h := &tar.Header{Name: path, Typeflag: tar.TypeReg, Size: k.size, Mode: 0o644}
	if k.executable {
		h.Mode = 0o755
	}
	if err := archive.WriteHeader(h); err != nil {
		return err
	}
	_, err = io.CopyN(archive, f, k.size)
	return err
}
