package demo_test

import (
	"io/fs"
	"path"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/parley-server/parley/internal/app/demo"
	"github.com/parley-server/parley/internal/search"
	"github.com/parley-server/parley/internal/store/skill"
	"github.com/parley-server/parley/internal/store/wiki"
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
			t.Errorf("%s is not a valid document path", name)
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

func TestDemoHasThreeSkills(t *testing.T) {
	t.Parallel()
	files, err := fs.Glob(demo.Skills, "skills/*/"+skill.File)
	if err != nil || len(files) != 3 {
		t.Fatalf("%v, %v", files, err)
	}
	for _, file := range files {
		content, err := demo.Skills.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		k, problems := skill.Parse(string(content))
		if len(problems) > 0 || k.Name != path.Base(path.Dir(file)) || k.Contract == nil {
			t.Errorf("%s: %+v, %v", file, k, problems)
		}
		for _, page := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(k.Body, -1) {
			if _, err := demo.Files.ReadFile(wiki.PageKey(page[1])); err != nil {
				t.Errorf("%s names the page %s: %v", file, page[1], err)
			}
		}
	}
}
