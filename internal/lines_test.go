package internal_test

import (
	"go/scanner"
	"go/token"
	"os"
	"strings"
	"testing"
	"unicode/utf8"
)

// maxColumns is the longest line of code. A tab counts as one column.
const maxColumns = 140

// TestLinesAreShort finds lines that do not fit beside another file. Lines with a raw string may be
// longer: they are statements, documents and tags, which a break would change.
func TestLinesAreShort(t *testing.T) {
	t.Parallel()
	for _, name := range filesBelow(t, ".go") {
		if strings.HasPrefix(name, "../db/") { // generated
			continue
		}
		src, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		raw := rawLines(src)
		for i, line := range strings.Split(string(src), "\n") {
			if n := utf8.RuneCountInString(line); n > maxColumns && !raw[i+1] {
				t.Errorf("%s:%d has %d columns; break it after %d", name, i+1, n, maxColumns)
			}
		}
	}
}

// rawLines returns the numbers of the lines that have a part of a raw string.
func rawLines(src []byte) map[int]bool {
	files := token.NewFileSet()
	f := files.AddFile("", -1, len(src))
	var s scanner.Scanner
	s.Init(f, src, nil, 0)
	lines := map[int]bool{}
	for {
		at, kind, text := s.Scan()
		if kind == token.EOF {
			return lines
		}
		if kind == token.STRING && text[0] == '`' {
			for n, first := 0, f.Line(at); n <= strings.Count(text, "\n"); n++ {
				lines[first+n] = true
			}
		}
	}
}
