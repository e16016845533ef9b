package workdir

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// Unpack applies the changes in an archive of Pack to the folder. The archive may be hostile: it
// reaches nothing outside the folder, and makes nothing but directories, regular files and links,
// within the limits of Save. After an error the folder may be changed in part.
func (m *Mirror) Unpack(ctx context.Context, from io.Reader) error {
	root, err := openRoot(m.dir)
	if err != nil {
		return err
	}
	defer root.Close()
	u := &unpacking{tree: &tree{top: root}}
	defer u.Close()
	archive := tar.NewReader(from)
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read an archive: %w", err)
		}
		if err := u.unpackEntry(h, archive); err != nil {
			return fmt.Errorf("unpack %s: %w", quotePath(h.Name), err)
		}
	}
}

// unpacking is one Unpack.
type unpacking struct {
	*tree
	names   int
	pathLen int
	bytes   int64
}

func (u *unpacking) unpackEntry(h *tar.Header, content io.Reader) error {
	name := h.Name
	if h.Typeflag == tar.TypeDir {
		name = strings.TrimSuffix(name, "/")
	}
	if err := u.checkEntry(name, h); err != nil {
		return err
	}
	dir, base, err := u.findParent(name)
	if err != nil {
		return err
	}
	switch h.Typeflag {
	case tar.TypeChar:
		err = dir.RemoveAll(base)
		u.closeBelow(0) // an open directory may be among those that were removed
		return err
	case tar.TypeDir:
		return makeDir(dir, base)
	case tar.TypeSymlink:
		if err := removeName(dir, base); err != nil {
			return err
		}
		return dir.Symlink(h.Linkname, base)
	default:
		return writeFile(dir, base, h, content)
	}
}

// checkEntry checks an entry before it has any effect.
func (u *unpacking) checkEntry(name string, h *tar.Header) error {
	u.names++
	u.pathLen += len(name) + len(h.Linkname)
	top, _, _ := strings.Cut(name, "/")
	switch {
	case !filepath.IsLocal(name) || path.Clean(name) != name || name == "." || strings.ContainsRune(name, 0) || top == Attachments:
		return errors.New("it is not a name in the folder")
	case len(name) > MaxPath || strings.Count(name, "/") >= MaxDepth:
		return errors.New("it is too long or too deep")
	case u.names > 2*MaxFiles || u.pathLen > 2*maxNames: // each name can be removed and made
		return errors.New("there are too many names")
	}
	switch h.Typeflag {
	case tar.TypeReg:
		if u.bytes += h.Size; h.Size > MaxFile || u.bytes > Quota {
			return errors.New("the files are too large")
		}
	case tar.TypeSymlink:
		if h.Linkname == "" || len(h.Linkname) > MaxPath || strings.ContainsRune(h.Linkname, 0) {
			return errors.New("its target cannot be the target of a link")
		}
	case tar.TypeChar:
		if h.Devmajor != 0 || h.Devminor != 0 {
			return errors.New("it is a device")
		}
	case tar.TypeDir:
	default:
		return errors.New("it is not a file, directory or link")
	}
	return nil
}

// makeDir makes a directory, unless it exists.
func makeDir(dir *os.Root, name string) error {
	if info, err := dir.Lstat(name); err == nil && info.IsDir() {
		return nil
	}
	if err := removeName(dir, name); err != nil {
		return err
	}
	if err := dir.Mkdir(name, 0o755); err != nil {
		return err
	}
	return dir.Chmod(name, 0o755) // independent of this process's umask
}

// writeFile replaces a name with a new file.
func writeFile(dir *os.Root, name string, h *tar.Header, content io.Reader) error {
	if err := removeName(dir, name); err != nil {
		return err
	}
	mode := fs.FileMode(0o644)
	if h.Mode&0o100 != 0 {
		mode = 0o755
	}
	f, err := dir.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, content)
	if err == nil {
		err = f.Chmod(mode) // independent of this process's umask
	}
	return errors.Join(err, f.Close())
}

// removeName removes a name, but no directory with contents.
func removeName(dir *os.Root, name string) error {
	if err := dir.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
