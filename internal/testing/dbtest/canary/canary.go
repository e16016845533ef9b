// Package canary searches for a secret where none may be: in databases, their files and logs, and
// in the output of a service. It searches for the value itself and for its encodings. A search
// without findings proves something only beside one with findings: Find is for that negative
// control.
package canary

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"testing"
)

// New returns a value that no text contains by chance, with characters that JSON, URLs, SQL and Go
// encode differently.
func New() string { return rand.Text() + `&"\'/+ %<` + rand.Text() }

// Source is something to search: a name, and a function that reads its content.
type Source struct {
	Name string
	Each func(search func(place string, content []byte)) error
}

// Finding is a form of the value, and the place where it is.
type Finding struct{ Source, Place, Form string }

func (f Finding) String() string { return fmt.Sprintf("%s in %s (%s)", f.Form, f.Place, f.Source) }

// Sweep fails the test for every place that contains the value in any form.
func Sweep(t testing.TB, value string, sources ...Source) {
	t.Helper()
	for _, f := range Find(t, value, sources...) {
		t.Errorf("the secret is stored: %s", f)
	}
}

// Find lists the places that contain the value, once for each form.
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
