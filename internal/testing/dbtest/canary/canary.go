// Package canary looks for a secret where no secret may be: in databases, their
// files and logs, in what a service writes and sends. It looks for the value itself
// and for what encodings make of it. A search that finds nothing proves something
// only beside one that does: Find is for that negative control.
package canary

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"testing"
)

// New makes a value that no text has by chance, with characters that JSON, URLs, SQL
// and Go write differently.
func New() string { return rand.Text() + `&"\'/+ %<` + rand.Text() }

// Source is something to search: a name, and how to go through its content.
type Source struct {
	Name string
	Each func(search func(place string, content []byte)) error
}

// Finding is a form of the value, and where it is.
type Finding struct{ Source, Place, Form string }

func (f Finding) String() string { return fmt.Sprintf("%s in %s (%s)", f.Form, f.Place, f.Source) }

// Sweep fails the test for every place that has the value in any form.
func Sweep(t testing.TB, value string, sources ...Source) {
	t.Helper()
	for _, f := range Find(t, value, sources...) {
		t.Errorf("the secret is stored: %s", f)
	}
}

// Find lists where the value is, once for each place and form.
func Find(t testing.TB, value string, sources ...Source) []Finding {
	t.Helper()
	var found []Finding
	all := forms(value)
	for _, s := range sources {
		searched := 0
		err := s.Each(func(place string, content []byte) {
			searched += len(content)
			for _, f := range all {
				if bytes.Contains(content, f.text) {
					found = append(found, Finding{s.Name, place, f.name})
				}
			}
		})
		if err != nil {
			t.Fatalf("search %s: %v", s.Name, err)
		}
		if searched == 0 {
			t.Errorf("%s is empty: nothing was searched", s.Name)
		}
	}
	return found
}
