package client

import (
	"context"
	"fmt"
	"io"
	"net/http"
)

// FolderEntry is a file, a folder or a link in the folder of a session's agent. A path with bytes that
// cannot be printed is in quotes, as of Go; SessionFile accepts it so.
type FolderEntry struct {
	Path       string `json:"path"`
	Kind       string `json:"kind"` // file, dir or symlink
	Executable bool   `json:"executable"`
	Size       int64  `json:"size"`
	SHA256     string `json:"sha256,omitempty"` // hexadecimal, of a file
	Target     string `json:"target,omitempty"` // of a link
}

// SessionFiles lists the folder of a session's agent as it was last saved. The key needs the scope
// sessions:read.
func (a Admin) SessionFiles(ctx context.Context, session string) ([]FolderEntry, error) {
	return listAll[FolderEntry](ctx, a, a.workspace(http.MethodGet, nil, "sessions", session, "folder"))
}

// SessionFile writes a file of this folder to w. After an error, w does not have the whole file.
func (a Admin) SessionFile(ctx context.Context, session, path string, w io.Writer) error {
	call := a.workspace(http.MethodGet, nil, "sessions", session, "folder", "content").with("path", path)
	if call.err != nil {
		return call.err
	}
	req, err := a.c.newRequest(ctx, call.method, call.at, nil)
	if err != nil {
		return err
	}
	res, err := a.c.sendRequest(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		body, _ := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
		return decodeFailure(res, body)
	}
	n, err := io.Copy(w, res.Body)
	if err == nil && res.ContentLength >= 0 && n != res.ContentLength {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return fmt.Errorf("read the file %s: %w", path, err)
	}
	return nil
}
