package admin

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/toolenv/workdir"
)

// downloadTime limits the download of a file.
const downloadTime = 10 * time.Minute

// folderSession returns the session in the path.
func (s *api) folderSession(ctx context.Context, c *call) (uuid.UUID, error) {
	id, err := uuid.Parse(c.PathValue("sessionId"))
	if err != nil {
		return id, fault.New(fault.SessionNotFound, "The session %.80q does not exist in this workspace.", c.PathValue("sessionId"))
	}
	_, err = s.Sessions.Head(ctx, c.Caller.Workspace.ID, id)
	return id, err
}

// listSessionFiles lists the folder of a session's agent as it was last saved.
func (s *api) listSessionFiles(ctx context.Context, c *call) (any, error) {
	id, err := s.folderSession(ctx, c)
	if err != nil {
		return nil, err
	}
	list, err := s.Folders.List(ctx, c.Caller.Workspace.ID, id)
	if err != nil {
		return nil, err
	}
	for i, e := range list {
		list[i].Path, list[i].Target = printablePath(e.Path), printablePath(e.Target)
	}
	slices.SortFunc(list, func(a, b workdir.Entry) int { return strings.Compare(a.Path, b.Path) })
	return paged(c, list, func(e workdir.Entry) string { return e.Path })
}

// getSessionFile sends a file of the folder.
func (s *api) getSessionFile(ctx context.Context, c *call) (any, error) {
	path, err := c.documentPath()
	if err != nil {
		return nil, err
	}
	id, err := s.folderSession(ctx, c)
	if err != nil {
		return nil, err
	}
	if plain, err := strconv.Unquote(path); err == nil && strings.HasPrefix(path, `"`) {
		path = plain
	}
	f, err := s.Folders.Open(ctx, c.Caller.Workspace.ID, id, path)
	return sent{f, context.WithoutCancel(ctx)}, err
}

func (f sent) send(w http.ResponseWriter) error {
	ctx, cancel := context.WithTimeout(f.ctx, downloadTime)
	defer cancel()
	h := w.Header()
	h.Set("Content-Type", "application/octet-stream")
	h.Set("Content-Disposition", "attachment")
	h.Set("Content-Security-Policy", "sandbox; default-src 'none'")
	h.Set("Content-Length", strconv.FormatInt(f.Size, 10))
	w.WriteHeader(http.StatusOK)
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(downloadTime))
	return f.Copy(ctx, w)
}

// printablePath returns a path as it is if all of it can be printed and read, else in quotes.
func printablePath(path string) string {
	if quoted := strconv.Quote(path); quoted != `"`+path+`"` || strings.Join(strings.Fields(path), " ") != path {
		return quoted
	}
	return path
}
