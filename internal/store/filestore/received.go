package filestore

import (
	"context"
	"fmt"
	"path"
	"strings"

	"github.com/google/uuid"
)

// MaxReceived is the maximum size, in bytes, of the files from users that a session's commands can
// see: the newest files that fit.
const MaxReceived = 256 << 20

// Received is a file in a message of a session.
type Received struct {
	Turn    uuid.UUID
	Name    string // its filename, with a number if another file of the session has the same: report-2.csv
	Content Content
}

// Received lists the files in the messages of a session, up to that of a turn. A file keeps its
// name for as long as the session lasts.
func (s *Store) Received(ctx context.Context, workspace, session, turn uuid.UUID) ([]Received, error) {
	rows, err := s.q.FilesReceived(ctx, workspace, session, turn)
	if err != nil {
		return nil, fmt.Errorf("read the files of a session: %w", err)
	}
	names, known := make(map[string]bool), make(map[uuid.UUID]string)
	list := make([]Received, len(rows))
	for i, r := range rows {
		name, again := known[r.File.ID]
		if !again {
			name = unusedName(names, r.File.Filename)
			names[strings.ToLower(name)], known[r.File.ID] = true, name
		}
		list[i] = Received{Turn: r.Turn, Name: name, Content: contentOf(s.q, r.File)}
	}
	return list, nil
}

// unusedName returns a filename that no other file has, ignoring case.
func unusedName(taken map[string]bool, filename string) string {
	ext := path.Ext(filename)
	name := filename
	for n := 2; taken[strings.ToLower(name)]; n++ {
		name = fmt.Sprintf("%s-%d%s", strings.TrimSuffix(filename, ext), n, ext)
	}
	return name
}
