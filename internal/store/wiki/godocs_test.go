package wiki_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// goDocs calls each with the doc comments of the declarations below a directory, one document for
// each, until it returns false.
func goDocs(t testing.TB, dir string, each func(path, content string) bool) {
	t.Helper()
	err := filepath.WalkDir(dir, func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") {
			return err
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return nil // a file that tests a parser
		}
		rel, _ := filepath.Rel(dir, file)
		docs := docsOf(parsed)
		for _, name := range slices.Sorted(maps.Keys(docs)) {
			title := parsed.Name.Name + "." + name
			if !each(path.Join(filepath.ToSlash(path.Dir(rel)), name)+".md", fmt.Sprintf("# %s\n\n%s", title, docs[name])) {
				return fs.SkipAll
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// docsOf returns the doc comments of a file by the names of the exported declarations.
func docsOf(file *ast.File) map[string]string {
	docs := make(map[string]string)
	add := func(name string, doc *ast.CommentGroup) {
		if text := doc.Text(); len(text) > 40 && len(name) < 80 {
			docs[name] = text
		}
	}
	add("package", file.Doc)
	for _, decl := range file.Decls {
		switch d := decl.(type) {
		case *ast.FuncDecl:
			add(receiver(d)+d.Name.Name, d.Doc)
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				if s, ok := spec.(*ast.TypeSpec); ok {
					add(s.Name.Name, firstGroup(s.Doc, d.Doc))
				}
			}
		}
	}
	return docs
}

func firstGroup(a, b *ast.CommentGroup) *ast.CommentGroup {
	if a != nil {
		return a
	}
	return b
}

// receiver returns the type of a method with a dot, or "".
func receiver(d *ast.FuncDecl) string {
	if d.Recv == nil || len(d.Recv.List) == 0 {
		return ""
	}
	for t := d.Recv.List[0].Type; ; {
		switch x := t.(type) {
		case *ast.StarExpr:
			t = x.X
		case *ast.IndexExpr:
			t = x.X
		case *ast.Ident:
			return x.Name + "."
		default:
			return ""
		}
	}
}
