package wiki

import (
	"context"
	"fmt"
	"regexp"
	"strings"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/text"
)

// grepPage is the number of documents in memory at once while grep reads.
const grepPage = 16

// Grep calls each with the lines that match, by path and line number, at most limit of them, and
// reports whether more lines match. It reads only documents with a path that begins with prefix.
func (s *Store) Grep(ctx context.Context, workspace uuid.UUID, pattern *regexp.Regexp, prefix string, limit int,
	each func(path string, line int, text string)) (more bool, err error) {
	if !text.IsStorable(prefix) {
		return false, nil
	}
	found := 0
	for after := ""; ; {
		docs, err := s.q.DocumentsPage(ctx, workspace, prefix, after, grepPage)
		if err != nil {
			return false, fmt.Errorf("read documents: %w", err)
		}
		for _, d := range docs {
			n := 0
			for line := range strings.Lines(d.Content) {
				n++
				line = strings.TrimRight(line, "\r\n")
				if !pattern.MatchString(line) {
					continue
				}
				if found == limit {
					return true, nil
				}
				found++
				each(d.Path, n, line)
			}
			after = d.Path
		}
		if len(docs) < grepPage {
			return false, nil
		}
	}
}
