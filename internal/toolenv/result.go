package toolenv

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"github.com/parley-server/parley/internal/text"
	"github.com/parley-server/parley/internal/tool"
)

const (
	results       = "tool-results" // files with the results of tools
	maxResultSize = 64 << 20       // bytes of such a file that are read; the folder keeps no larger one
)

// KeepResult writes a result of a call into a file of the session's folder, saves the folder, and
// returns the path: tool-results/TOOL-1.txt, or the next number. A result that has a file already keeps
// it, so neither a call that is repeated after a crash nor a command that prints the file makes another
// one. A folder that cannot take the file is a tool.Refusal.
func (x *Run) KeepResult(ctx context.Context, call tool.Call, ext string, content []byte) (file string, err error) {
	if err := x.openFolder(ctx); err != nil {
		return "", err
	}
	for n := 1; ; n++ {
		file = fmt.Sprintf("%s/%s-%d.%s", results, fileName(call.Tool), n, ext)
		info, err := x.root.Lstat(file)
		if errors.Is(err, fs.ErrNotExist) {
			break
		}
		if err != nil {
			return "", x.pathError(file, err)
		}
		if !info.Mode().IsRegular() || info.Size() != int64(len(content)) {
			continue
		}
		if same, err := x.root.ReadFile(file); err == nil && bytes.Equal(same, content) {
			if x.dirty { // a save before has failed
				_, err = x.saveFolder(ctx)
			}
			return file, err
		}
	}
	return file, x.Write(ctx, call, file, content)
}

// ReadResult reads a file of KeepResult.
func (x *Run) ReadResult(ctx context.Context, file string) (string, error) {
	f, err := x.Open(ctx, file)
	if err != nil {
		return "", err
	}
	defer f.Close()
	content, err := io.ReadAll(io.LimitReader(f, maxResultSize))
	return string(content), err
}

// fileName returns the name of a tool as a part of a file's name.
func fileName(name string) string {
	if name == "" {
		name = "result"
	}
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-", r) {
			return r
		}
		return '-'
	}, text.Prefix(name, 64))
}
