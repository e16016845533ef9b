package internal_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// readers import the generated queries without owning a table: they only read.
var readers = []string{"pulse", "store/adminlog", "turn"}

// TestOnlyTheStoresImportTheQueries checks that the generated package db is imported only by the
// packages that own tables and by the readers.
func TestOnlyTheStoresImportTheQueries(t *testing.T) {
	t.Parallel()
	allowed := slices.Concat(readers, slices.Collect(maps.Values(owners)))
	for _, p := range packages(t) {
		name, mine := strings.CutPrefix(p.ImportPath, module)
		if mine && slices.Contains(p.Imports, module+"db") && !slices.Contains(allowed, strings.TrimPrefix(name, "internal/")) {
			t.Errorf("%s must not import db: call the package that owns the table", name)
		}
	}
}

// TestRowsStayInTheirStore checks that no exported identifier of a package is or contains a row of
// the generated queries. A package converts a row to a type of its own once.
func TestRowsStayInTheirStore(t *testing.T) {
	t.Parallel()
	checked := 0
	for _, pkg := range slices.Compact(slices.Sorted(maps.Values(owners))) {
		files, err := filepath.Glob(filepath.Join(pkg, "*.go"))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s has %d files, %v", pkg, len(files), err)
		}
		for _, name := range files {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			set := token.NewFileSet()
			for at, row := range exportedRows(t, set, name, text) {
				t.Errorf("%s: %s is a row of the database: convert it to a type of the package", set.Position(at), row)
			}
			checked++
		}
	}
	if checked < 50 {
		t.Errorf("only %d files were checked", checked)
	}
}

func TestExportedRowsAreFound(t *testing.T) {
	t.Parallel()
	const code = `package p
type Alias = db.Turn
type Kept struct { Row db.Session; rows []db.Event; Pages map[string]*db.Page }
type hidden struct { Row db.Hidden }
func (k Kept) Get() (db.File, error) { return db.File{}, nil }
func Take(on db.DBTX, _ db.Param) {}
func (h hidden) List() []db.Unseen { return nil }
var All []db.Skill
func inner(db.Inner) {}
`
	set := token.NewFileSet()
	rows := slices.Sorted(maps.Values(exportedRows(t, set, "p.go", []byte(code))))
	if got := strings.Join(rows, " "); got != "db.File db.Page db.Param db.Session db.Skill db.Turn" {
		t.Errorf("found %s", got)
	}
}

// exportedRows returns the types of db that the exported identifiers of a file use. DBTX is not a
// row: it is a pool or a transaction.
func exportedRows(t *testing.T, set *token.FileSet, name string, text []byte) map[token.Pos]string {
	t.Helper()
	file, err := parser.ParseFile(set, name, text, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	file.Decls = slices.DeleteFunc(file.Decls, isHiddenMethod)
	ast.FileExports(file)
	rows := make(map[token.Pos]string)
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BlockStmt:
			return false
		case *ast.SelectorExpr:
			if of, ok := n.X.(*ast.Ident); ok && of.Name == "db" && n.Sel.Name != "DBTX" {
				rows[n.Pos()] = "db." + n.Sel.Name
			}
		}
		return true
	})
	return rows
}

// isHiddenMethod reports whether a declaration is a method of an unexported type.
func isHiddenMethod(d ast.Decl) bool {
	f, ok := d.(*ast.FuncDecl)
	if !ok || f.Recv == nil {
		return false
	}
	of := f.Recv.List[0].Type
	if star, ok := of.(*ast.StarExpr); ok {
		of = star.X
	}
	name, ok := of.(*ast.Ident)
	return ok && !name.IsExported()
}
