package pdftext

import (
	"bufio"
	"fmt"
	"strings"

	"github.com/ledongthuc/pdf"
)

const (
	maxDepth = 64     // levels of the tree of pages
	maxNodes = 20_000 // of the tree of pages
	maxForms = 4      // levels of forms, which are drawings in a page
)

// writer writes the text of a file.
type writer struct {
	out     *bufio.Writer
	pages   int
	nodes   int
	written bool // text besides the lines before pages
}

// writeText writes the text of all pages, and returns the exit code.
func writeText(out *bufio.Writer, r *pdf.Reader) int {
	w := &writer{out: out}
	func() {
		defer func() { _ = recover() }() // of the pages that were found
		w.writePages(r.Trailer().Key("Root").Key("Pages"), pdf.Value{}, 0)
	}()
	switch {
	case w.pages == 0:
		return exitBroken
	case !w.written:
		return exitNoText
	}
	return exitDone
}

// writePages writes the pages below a node of the tree, which may have circles. Pages without resources
// have those of the nodes above.
func (w *writer) writePages(node, resources pdf.Value, depth int) {
	if depth > maxDepth {
		return
	}
	resources = resourcesOf(node, resources)
	kids := node.Key("Kids")
	for i := 0; i < kids.Len() && w.pages < MaxPages && w.nodes < maxNodes; i++ {
		w.nodes++
		kid := kids.Index(i)
		if kid.Key("Kids").Kind() == pdf.Array {
			w.writePages(kid, resources, depth+1)
			continue
		}
		if kid.Kind() == pdf.Dict {
			w.pages++
			w.writePage(kid, resourcesOf(kid, resources))
		}
	}
}

// writePage writes a page that has text.
func (w *writer) writePage(page, resources pdf.Value) {
	text := strings.TrimSpace(pageText(page.Key("Contents"), resources))
	if text == "" {
		return
	}
	if w.written {
		_ = w.out.WriteByte('\n') // the error of Flush
	}
	fmt.Fprintf(w.out, "[page %d]\n%s\n", w.pages, text)
	w.written = true
	_ = w.out.Flush() // what is written stays if a limit ends the process
}

// pageText returns the text of a page, up to the point at which the parser gives up with a panic.
func pageText(contents, resources pdf.Value) (text string) {
	l := &layout{}
	defer func() {
		_ = recover()
		text = l.String()
	}()
	l.draw(contents, resources, identity, 0)
	return ""
}

// resourcesOf returns the own resources of a node or form, or those of the level above.
func resourcesOf(node, above pdf.Value) pdf.Value {
	if own := node.Key("Resources"); !own.IsNull() {
		return own
	}
	return above
}
