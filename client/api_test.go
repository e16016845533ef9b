package client_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/parley-server/parley/client"
	"github.com/parley-server/parley/internal/event"
)

// TestAPIIsPublicAndDocumented checks that every exported declaration has a doc comment and names
// no type of an internal package.
func TestAPIIsPublicAndDocumented(t *testing.T) {
	t.Parallel()
	paths, err := filepath.Glob("*.go")
	if err != nil || len(paths) == 0 {
		t.Fatalf("%q, %v", paths, err)
	}
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		internal := map[string]bool{}
		for _, imp := range file.Imports {
			if p, _ := strconv.Unquote(imp.Path.Value); strings.Contains(p, "/internal/") {
				internal[filepath.Base(p)] = true
			}
		}
		for _, decl := range file.Decls {
			checkDecl(t, path, decl, internal)
		}
	}
}

func checkDecl(t *testing.T, path string, decl ast.Decl, internal map[string]bool) {
	t.Helper()
	switch d := decl.(type) {
	case *ast.FuncDecl:
		if d.Name.IsExported() && (d.Recv == nil || isExportedReceiver(d.Recv)) {
			checkNode(t, path, d.Name.Name, d.Doc != nil, d.Type, internal)
		}
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			switch s := spec.(type) {
			case *ast.TypeSpec:
				if s.Name.IsExported() {
					checkNode(t, path, s.Name.Name, d.Doc != nil || s.Doc != nil, s.Type, internal)
				}
			case *ast.ValueSpec:
				for _, name := range s.Names {
					if name.IsExported() {
						checkNode(t, path, name.Name, d.Doc != nil || s.Doc != nil, s, internal)
					}
				}
			}
		}
	}
}

func isExportedReceiver(recv *ast.FieldList) (exported bool) {
	ast.Inspect(recv.List[0].Type, func(n ast.Node) bool {
		id, isIdent := n.(*ast.Ident)
		exported = exported || isIdent && id.IsExported()
		return true
	})
	return exported
}

func checkNode(t *testing.T, path, name string, documented bool, node ast.Node, internal map[string]bool) {
	t.Helper()
	if !documented {
		t.Errorf("%s: %s lacks a doc comment", path, name)
	}
	ast.Inspect(node, func(n ast.Node) bool {
		if field, ok := n.(*ast.Field); ok && len(field.Names) > 0 && !field.Names[0].IsExported() {
			return false
		}
		if sel, ok := n.(*ast.SelectorExpr); ok {
			if pkg, ok := sel.X.(*ast.Ident); ok && internal[pkg.Name] {
				t.Errorf("%s: %s exposes %s.%s of an internal package", path, name, pkg.Name, sel.Sel.Name)
			}
		}
		return true
	})
}

// TestBodiesEqualTheServers compares the members of every frame with the server's own type.
func TestBodiesEqualTheServers(t *testing.T) {
	t.Parallel()
	for _, pair := range []struct {
		ours   client.Body
		theirs event.Body
	}{
		{client.Open{}, event.Open{}},
		{client.Text{}, event.Text{}},
		{client.ToolUse{}, event.ToolUse{}},
		{client.ToolResult{}, event.ToolResult{}},
		{client.InputRequired{}, event.InputRequired{}},
		{client.TurnUsage{}, event.Usage{}},
		{client.Structured{}, event.Structured{}},
		{client.Attachment{}, event.Attachment{}},
		{client.AttachmentRejected{}, event.AttachmentRejected{}},
		{client.TurnError{}, event.Error{}},
		{client.Done{}, event.Done{}},
	} {
		if string(pair.ours.Kind()) != string(pair.theirs.Kind()) {
			t.Errorf("%T is of kind %s, %T of kind %s", pair.ours, pair.ours.Kind(), pair.theirs, pair.theirs.Kind())
		}
		ours, theirs := members(reflect.TypeOf(pair.ours), ""), members(reflect.TypeOf(pair.theirs), "")
		if !reflect.DeepEqual(ours, theirs) {
			t.Errorf("%T has the members %v, %T %v", pair.ours, ours, pair.theirs, theirs)
		}
		body, err := client.Frame{Event: pair.ours.Kind(), Data: []byte("{}")}.Body()
		if reflect.TypeOf(body) != reflect.TypeOf(pair.ours) || err != nil {
			t.Errorf("a frame of kind %s has the body %T, %v", pair.ours.Kind(), body, err)
		}
	}
}

// members returns the JSON tags of a type, including those of its members' types.
func members(of reflect.Type, path string) map[string]bool {
	all := map[string]bool{}
	for of.Kind() == reflect.Pointer || of.Kind() == reflect.Slice {
		of = of.Elem()
	}
	if of.Kind() != reflect.Struct {
		return all
	}
	for _, field := range reflect.VisibleFields(of) {
		tag := field.Tag.Get("json")
		if field.Anonymous || tag == "" || tag == "-" {
			continue
		}
		all[path+tag] = true
		name, _, _ := strings.Cut(tag, ",")
		for member := range members(field.Type, path+name+".") {
			all[member] = true
		}
	}
	return all
}
