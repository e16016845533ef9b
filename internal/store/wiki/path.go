package wiki

import (
	"strings"
	"unicode"

	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/text"
)

// The limits of a document.
const (
	MaxPath    = 255     // bytes
	MaxContent = 1 << 20 // bytes
)

const (
	pageFolder = "wiki/"
	pageSuffix = ".md"
)

// PageName returns the name of the page that a text refers to: models and users often pass the path
// of its document, or a part of that.
func PageName(text string) string {
	return strings.TrimSuffix(strings.TrimPrefix(text, pageFolder), pageSuffix)
}

// PageKey returns the document path of a wiki page: "onboarding" is stored at "wiki/onboarding.md".
func PageKey(page string) string { return pageFolder + page + pageSuffix }

// PageOf is the reverse of PageKey; ok is false for documents that are not wiki pages.
func PageOf(path string) (page string, ok bool) {
	page, folder := strings.CutPrefix(path, pageFolder)
	page, suffix := strings.CutSuffix(page, pageSuffix)
	if !folder || !suffix || page == "" || strings.HasSuffix(page, "/") {
		return "", false
	}
	return page, true
}

// checkPath returns the violations of a document's path. It rejects control characters because a
// path is part of a line in the output of grep.
func checkPath(path string) []fault.Violation {
	wrong := func(rule, message string) []fault.Violation {
		return []fault.Violation{{Param: "/path", Rule: rule, Message: message}}
	}
	switch {
	case path == "":
		return wrong("required", "A document needs a path.")
	case len(path) > MaxPath:
		return []fault.Violation{{Param: "/path", Rule: "max_length", Message: "A path is at most 255 bytes long.", Expected: MaxPath}}
	case !text.IsStorable(path) || strings.ContainsFunc(path, unicode.IsControl):
		return wrong("format", "A path is UTF-8 without control characters.")
	case strings.HasPrefix(path, "/") || strings.Contains(path, "\\"):
		return wrong("format", "A path is relative and uses / between folders.")
	}
	for segment := range strings.SplitSeq(path, "/") {
		if segment == "" || segment == "." || segment == ".." {
			return wrong("format", "A path has no empty, . or .. segments.")
		}
	}
	if strings.HasPrefix(path, pageFolder) {
		if _, ok := PageOf(path); !ok {
			return wrong("format", "Below wiki/ there are only pages: the path ends with <page>.md.")
		}
	}
	return nil
}

// checkNew returns the violations of the path of a document to be written: two names must not look
// the same.
func checkNew(path string) []fault.Violation {
	vs := checkPath(path)
	if len(vs) > 0 {
		return vs
	}
	page, ok := PageOf(path)
	if ok && PageName(page) != page {
		vs = append(vs, fault.Violation{Param: "/path", Rule: "format", Message: "A wiki page is named without wiki/ and .md."})
	} else if !ok {
		page = path
	}
	for segment := range strings.SplitSeq(page, "/") {
		if strings.TrimSpace(segment) != segment {
			return append(vs, fault.Violation{Param: "/path", Rule: "format", Message: "A name neither begins nor ends with a blank."})
		}
	}
	return vs
}

// checkContent returns the violations of a document's content.
func checkContent(content string) []fault.Violation {
	var vs []fault.Violation
	if len(content) > MaxContent {
		vs = append(vs, fault.Violation{Param: "/content", Rule: "max_length", Message: "A document is at most 1 MiB.", Expected: MaxContent})
	}
	if !text.IsStorable(content) {
		vs = append(vs, fault.Violation{Param: "/content", Rule: "format", Message: "A document is UTF-8 text without NUL."})
	}
	return vs
}
