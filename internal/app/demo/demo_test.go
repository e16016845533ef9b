package demo_test

import (
	"io/fs"
	"path"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/parley-server/parley/internal/app/demo"
	"github.com/parley-server/parley/internal/search"
	"github.com/parley-server/parley/internal/wiki"
)

func TestDemoIsFivePagesAndTwoFiles(t *testing.T) {
	t.Parallel()
	var pages, files int
	err := fs.WalkDir(demo.Files, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := demo.Files.ReadFile(name)
		if err != nil {
			return err
		}
		if !utf8.Valid(content) || len(content) > wiki.MaxContent || strings.Contains(string(content), "\x00") {
			t.Errorf("%s cannot be a document", name)
		}
		if _, page := wiki.PageOf(name); page {
			pages++
			if search.Title(string(content)) == "" {
				t.Errorf("%s has no title", name)
			}
		} else {
			files++
			if path.Ext(name) == ".md" {
				t.Errorf("%s is neither a page nor a plain file", name)
			}
		}
		return nil
	})
	if err != nil || pages != 5 || files != 2 {
		t.Errorf("%d pages and %d files, %v", pages, files, err)
	}
}
