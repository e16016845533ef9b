// Package knowledge contains the tools over a workspace's knowledge: search, wiki_read, read and grep,
// which report the documents they read as references, and wiki_write, which never overwrites a
// version that its caller has not read. They never trust the model's input. Other packages decide
// permissions.
package knowledge

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/search"
	"github.com/parley-server/parley/internal/text"
	"github.com/parley-server/parley/internal/tool"
)

const (
	maxInput   = 16 << 10             // bytes of a call's input
	maxWritten = 8 << 20              // bytes of a call's input that holds a page: JSON may write a byte as six
	maxOutput  = tool.MaxOutput - 200 // bytes of a document that read returns, with a line about the rest
	maxSummary = 80                   // characters
)

// Knowledge holds a workspace's documents. Wiki pages are documents too.
type Knowledge interface {
	// Page returns the content of a wiki page and its version; version 0 means that the page does
	// not exist.
	Page(ctx context.Context, workspace uuid.UUID, page string) (content string, version int, err error)
	// WritePage writes a wiki page over the expected version, 0 for a new page. ok is false if the
	// page has another version or does not exist. A page that already has the content is a success.
	// A *fault.Error is a violation of the page's limits.
	WritePage(ctx context.Context, workspace uuid.UUID, page, content string, expected int) (version int, ok bool, err error)
	// File returns the content of a document; found is false if it does not exist.
	File(ctx context.Context, workspace uuid.UUID, path string) (content string, found bool, err error)
	// Pages returns names of wiki pages that may be meant by an unknown one, at most some hundred.
	// Without pages there are none.
	Pages(ctx context.Context, workspace uuid.UUID, unknown string) ([]string, error)
	// Paths is Pages for the paths of documents.
	Paths(ctx context.Context, workspace uuid.UUID, unknown string) ([]string, error)
	// Search returns the passages that answer a query best, best first, at most limit of them, in
	// the documents with a path that begins with prefix.
	Search(ctx context.Context, workspace uuid.UUID, query, prefix string, limit int) ([]search.Hit, error)
	// Grep calls each with the lines that match, at most limit of them, and reports whether more
	// lines match.
	Grep(ctx context.Context, workspace uuid.UUID, pattern *regexp.Regexp, prefix string, limit int, each func(path string, line int,
		text string)) (more bool, err error)
}

// Folder holds the files that a session works on.
type Folder interface {
	// Text returns the text of a file, or the list of a directory. A path that cannot be read is a
	// tool.Refusal.
	Text(ctx context.Context, path string) (string, error)
}

// Tools returns the tools over k. If folder is not nil, read also reads the session's files: their
// paths are below /workspace, and they are not references.
func Tools(k Knowledge, folder Folder) []tool.Tool {
	return []tool.Tool{wikiRead{k}, wikiWrite{k}, read{k, folder}, grep{k}, find{k}}
}

// parseInput parses a call's input. wrong is a sentence for the model.
func parseInput(input json.RawMessage, into any) (wrong string) {
	return parseUpTo(maxInput, input, into)
}

func parseUpTo(limit int, input json.RawMessage, into any) (wrong string) {
	if len(input) > limit {
		return "The input is too long."
	}
	return tool.Decode(input, into)
}

// unknownName returns the result for an unknown name, with similar names or some that exist. kind
// begins the sentence.
func unknownName(kind, name string, near, all []string) tool.Result {
	msg := fmt.Sprintf("%s %q does not exist.", kind, shortName(name))
	switch {
	case len(near) > 0:
		msg += " Did you mean " + quoted(near, " or ") + "?"
	case len(all) == 0:
		msg += " The workspace has none."
	default:
		msg += " Existing " + strings.ToLower(kind[strings.LastIndexByte(kind, ' ')+1:]) + "s: " + quoted(all[:min(20, len(all))], ", ")
		if len(all) > 20 {
			msg += " and more"
		}
		msg += "."
	}
	return tool.Reject(msg)
}

func quoted(names []string, sep string) string {
	q := make([]string, len(names))
	for i, n := range names {
		q[i] = fmt.Sprintf("%q", n)
	}
	return strings.Join(q, sep)
}

// shortName shortens a name for a sentence of one line.
func shortName(s string) string {
	return text.Truncate(text.Mask(s), maxSummary)
}

// cutLines returns the beginning of s that fits into n bytes, whole lines where possible.
func cutLines(s string, n int) string {
	if len(s) <= n {
		return s
	}
	s = s[:n]
	if i := strings.LastIndexByte(s, '\n'); i > 0 {
		return s[:i+1]
	}
	for len(s) > 0 && !utf8.RuneStart(s[len(s)-1]) {
		s = s[:len(s)-1]
	}
	return s[:max(len(s)-1, 0)]
}
