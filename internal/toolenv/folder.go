package toolenv

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/parley-server/parley/internal/store/filestore"
	"github.com/parley-server/parley/internal/tool"
)

const (
	attachments = "attachments" // where commands see the users' files
	maxText     = 4 << 20       // bytes of a file that can be read as text
	maxListed   = 1000          // names of a directory
)

// Write writes a file of the session's folder and saves the folder. The new file replaces the old
// one, of any type: a link is not followed, and a pipe does not block.
func (x *Run) Write(ctx context.Context, call tool.Call, name string, content []byte) error {
	x.call = call.ID
	name, err := cleanPath(name)
	if err != nil {
		return err
	}
	if name == "." || name == attachments || strings.HasPrefix(name, attachments+"/") {
		return tool.Refusal("The path is a name in the folder, outside of attachments, which is read-only: reports/march.md.")
	}
	if err := x.openFolder(ctx); err != nil {
		return err
	}
	x.dirty = true
	if err := x.replaceFile(name, content); err != nil {
		return err
	}
	if _, err = x.saveFolder(ctx); err != nil {
		x.root.Remove(name) // a refused file must not fill the folder
	}
	return err
}

// replaceFile replaces name with a new file.
func (x *Run) replaceFile(name string, content []byte) error {
	dir := path.Dir(name)
	if x.hasLink(dir) {
		return tool.Refusal(fmt.Sprintf("%q leads through a link. Write to where it leads.", name))
	}
	if err := x.root.MkdirAll(dir, 0o755); err != nil {
		return x.pathError(name, err)
	}
	mode := fs.FileMode(0o644)
	old, err := x.root.Lstat(name)
	switch {
	case err == nil && old.IsDir():
		return tool.Refusal(fmt.Sprintf("%q is a directory.", name))
	case err == nil && old.Mode().IsRegular():
		mode = old.Mode().Perm()
	}
	fresh := path.Join(dir, ".write-"+rand.Text())
	err = x.root.WriteFile(fresh, content, mode)
	if err == nil {
		err = x.root.Rename(fresh, name)
	}
	if err != nil {
		x.root.Remove(fresh)
		return x.pathError(name, err)
	}
	return x.changeOwner(filepath.Join(x.dir, filepath.FromSlash(strings.SplitN(name, "/", 2)[0])))
}

// hasLink reports whether a path contains a link: a call that is allowed by its name would write
// elsewhere.
func (x *Run) hasLink(dir string) bool {
	for ; dir != "."; dir = path.Dir(dir) {
		if info, err := x.root.Lstat(dir); err == nil && info.Mode().Type() == fs.ModeSymlink {
			return true
		}
	}
	return false
}

// Text reads a file of the session's folder as text, or lists a directory. The text of a PDF is
// extracted.
func (x *Run) Text(ctx context.Context, name string) (string, error) {
	name, err := cleanPath(name)
	if err != nil {
		return "", err
	}
	f, info, err := x.openFile(ctx, name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	if info.IsDir() {
		return listDirectory(f)
	}
	if isPDF(f) && info.Size() <= filestore.ReadPDF {
		pdf, err := io.ReadAll(io.LimitReader(f, filestore.ReadPDF))
		if err != nil {
			return "", fmt.Errorf("read a PDF of the folder: %w", err)
		}
		return x.r.cfg.Files.PDFText(ctx, x.t.Workspace, pdf)
	}
	if info.Size() > maxText {
		return "", tool.Refusal(fmt.Sprintf("%q has %d bytes; a file that is read has at most %d. Look at a part of it with a command.",
			name, info.Size(), maxText))
	}
	content, err := io.ReadAll(io.LimitReader(f, maxText))
	if err != nil {
		return "", fmt.Errorf("read a file of the folder: %w", err)
	}
	if strings.ContainsRune(string(content), 0) {
		return "", tool.Refusal(fmt.Sprintf("%q is no text.", name))
	}
	return strings.ToValidUTF8(string(content), "\uFFFD"), nil
}

// isPDF reports whether a file begins as a PDF does.
func isPDF(f io.ReaderAt) bool {
	head := make([]byte, len("%PDF-"))
	_, err := f.ReadAt(head, 0)
	return err == nil && string(head) == "%PDF-"
}

// listDirectory returns a directory as text, one name a line.
func listDirectory(dir fs.File) (string, error) {
	entries, err := dir.(fs.ReadDirFile).ReadDir(maxListed + 1)
	if err != nil && !errors.Is(err, io.EOF) {
		return "", fmt.Errorf("list a directory of the folder: %w", err)
	}
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	var b strings.Builder
	for i, e := range entries {
		switch {
		case i == maxListed:
			b.WriteString("[there is more]\n")
		case e.IsDir():
			fmt.Fprintf(&b, "%s/\n", e.Name())
		default:
			fmt.Fprintf(&b, "%s\n", e.Name())
		}
	}
	if b.Len() == 0 {
		return "[the directory is empty]", nil
	}
	return strings.ToValidUTF8(b.String(), "\uFFFD"), nil
}

// Open opens a file of the session's folder.
func (x *Run) Open(ctx context.Context, name string) (io.ReadCloser, error) {
	name, err := cleanPath(strings.TrimPrefix(name, "/workspace/"))
	if err != nil {
		return nil, err
	}
	f, info, err := x.openFile(ctx, name)
	if err != nil {
		return nil, err
	}
	if info.IsDir() {
		f.Close()
		return nil, tool.Refusal(fmt.Sprintf("%q is a directory; pack it into an archive first.", name))
	}
	return f, nil
}

// openFile opens a regular file or a directory, of the folder or of the users' files. Nothing that
// a command has left there can make it wait or lead it outside.
func (x *Run) openFile(ctx context.Context, name string) (*os.File, fs.FileInfo, error) {
	if err := x.openFolder(ctx); err != nil {
		return nil, nil, err
	}
	root := x.root
	if rest, ok := strings.CutPrefix(name+"/", attachments+"/"); ok {
		if err := x.saveAttachments(ctx); err != nil {
			return nil, nil, err
		}
		if x.attachments == "" {
			return nil, nil, tool.Refusal("The user has sent no files.")
		}
		sent, err := os.OpenRoot(x.attachments)
		if err != nil {
			return nil, nil, fmt.Errorf("open the attachments: %w", err)
		}
		defer sent.Close()
		root, name = sent, path.Clean("./"+rest)
	}
	f, err := root.OpenFile(name, os.O_RDONLY|nonblock, 0)
	if err != nil {
		return nil, nil, x.pathError(name, err)
	}
	info, err := f.Stat()
	if err != nil {
		f.Close()
		return nil, nil, fmt.Errorf("look at a file of the folder: %w", err)
	}
	if !info.Mode().IsRegular() && !info.IsDir() {
		f.Close()
		return nil, nil, tool.Refusal(fmt.Sprintf("%q is neither a file nor a directory.", name))
	}
	return f, info, nil
}

// cleanPath cleans a path of the folder.
func cleanPath(name string) (string, error) {
	clean := path.Clean(name)
	if name == "" {
		clean = "."
	}
	if !filepath.IsLocal(clean) || strings.ContainsRune(clean, 0) || len(clean) > 4096 {
		return "", tool.Refusal("The path must be relative to the folder and stay in it: reports/march.md.")
	}
	return clean, nil
}

// pathError converts a file system's error about a path from the model to a sentence.
func (x *Run) pathError(name string, err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return tool.Refusal(fmt.Sprintf("The folder has no file %q.", name))
	case errors.Is(err, fs.ErrPermission), errors.Is(err, fs.ErrExist):
		return tool.Refusal(fmt.Sprintf("%q cannot be opened there.", name))
	case errors.Is(err, syscall.ENOSPC):
		x.log.Error("there is no room for the folders of sessions", "err", err)
		return tool.Refusal("The server has no room for files now. Ask its administrator to look at the disk.")
	}
	x.log.Debug("a path of the folder was refused", "err", err)
	return tool.Refusal(fmt.Sprintf("%q is no path in the folder that can be used: it leads out of it, through a file, or is too long.", name))
}
