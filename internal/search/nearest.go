package search

import (
	"cmp"
	"slices"
	"strings"
)

// nearestBytes is the maximum length of names that are compared letter by letter.
const nearestBytes = 255

// Nearest returns the names that are similar to name, nearest
// first, at most limit. Case and the difference between -, _, / and blanks do not count.
func Nearest(name string, names []string, limit int) []string {
	type near struct {
		name     string
		distance int
	}
	want := foldCase(name)
	if want == "" || len(want) > nearestBytes {
		return nil
	}
	var found []near
	for _, n := range names {
		got := foldCase(n)
		if len(got) > nearestBytes {
			continue
		}
		d := editDistance(want, got)
		switch {
		case strings.Contains(got, want) || got != "" && strings.Contains(want, got):
			d = min(d, 2)
		case d > min(max(2, len(want)/3), len(want)/2):
			continue
		}
		found = append(found, near{n, d})
	}
	slices.SortFunc(found, func(a, b near) int {
		return cmp.Or(cmp.Compare(a.distance, b.distance), cmp.Compare(a.name, b.name))
	})
	var out []string
	for _, f := range found[:min(max(limit, 0), len(found))] {
		out = append(out, f.name)
	}
	return out
}

func foldCase(s string) string {
	return strings.Join(strings.FieldsFunc(strings.ToLower(s), func(r rune) bool {
		return r == '-' || r == '_' || r == '/' || r == ' '
	}), " ")
}

// editDistance returns the number of bytes to insert, delete or replace to turn a into b.
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			d := diagonal
			if a[i] != b[j] {
				d = 1 + min(diagonal, row[j], row[j+1])
			}
			diagonal, row[j+1] = row[j+1], d
		}
	}
	return row[len(b)]
}
