package internal_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/parley-server/parley/internal/testing/need"
)

var (
	quickTests = regexp.MustCompile(`(?s)(?:slow\.Test\(t, "[^"]*",|\bvar quick = \[\]string\{)([^)}]*)[)}]`)
	testName   = regexp.MustCompile(`"(Test\w+)"`)
)

// TestQuickTestsExist checks that a test which runs under -short in spite of its slow fixture
// exists in the package that names it.
func TestQuickTestsExist(t *testing.T) {
	t.Parallel()
	out, err := exec.Command("git", "-C", "..", "grep", "-lE", `slow\.Test\(|var quick =`, "--", "*_test.go").Output()
	if err != nil {
		need.Missing(t, "not a checkout of git: %v", err)
	}
	named := 0
	for path := range strings.FieldsSeq(string(out)) {
		text, err := os.ReadFile(filepath.Join("..", path))
		if err != nil {
			t.Fatal(err)
		}
		for _, list := range quickTests.FindAllSubmatch(text, -1) {
			for _, m := range testName.FindAllSubmatch(list[1], -1) {
				named++
				if !hasTest(t, filepath.Join("..", filepath.Dir(path)), string(m[1])) {
					t.Errorf("%s names %s, which does not exist", path, m[1])
				}
			}
		}
	}
	if named < 20 {
		t.Errorf("found the names of %d quick tests", named)
	}
}

func hasTest(t *testing.T, dir, name string) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), "\nfunc "+name+"(") {
			return true
		}
	}
	return false
}
