package internal_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var placeNamed = regexp.MustCompile(`(?:internal|queries|migrations|cmd|compat)/[\w./-]*`)

// TestMapIsTrue compares docs/internals/map.md with the code: the paths that it names exist, and
// each table is listed with the package that may write it.
func TestMapIsTrue(t *testing.T) {
	t.Parallel()
	page := readFile(t, "../docs/internals/map.md")
	for _, place := range placeNamed.FindAllString(page, -1) {
		if _, err := os.Stat(filepath.Join("..", strings.TrimRight(place, "."))); err != nil {
			t.Errorf("the map names %s, which does not exist", place)
		}
	}
	for table, owner := range owners {
		row := regexp.MustCompile("(?m)^\\| `internal/" + owner + "` \\|.*`" + table + "`")
		if !row.MatchString(page) {
			t.Errorf("the map does not list that %s writes %s", owner, table)
		}
	}
}
