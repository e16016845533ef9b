package web

import (
	"net/url"
	"strings"

	"github.com/parley-server/parley/internal/fault"
)

// form is what a user has filled in, with the errors of its fields.
type form struct {
	Values url.Values
	errs   map[string]string
	list   []fieldError // errs in the order in which they were found
	Note   string       // error of the form as a whole
}

// fieldError is the error of a field.
type fieldError struct{ Field, Text string }

// newForm returns the values of a request that was sent with a form.
func newForm(p *page) *form {
	f := &form{Values: p.PostForm, errs: make(map[string]string)}
	p.sent = append(p.sent, f)
	return f
}

// emptyForm returns a form with values to start from.
func emptyForm(pairs ...string) *form {
	f := &form{Values: make(url.Values), errs: make(map[string]string)}
	for i := 0; i+1 < len(pairs); i += 2 {
		f.Values.Set(pairs[i], pairs[i+1])
	}
	return f
}

// Value returns the text of a field.
func (f *form) Value(name string) string { return f.Values.Get(name) }

// Has reports whether a box is ticked.
func (f *form) Has(name, value string) bool {
	for _, v := range f.Values[name] {
		if v == value {
			return true
		}
	}
	return false
}

// Err returns the error of a field.
func (f *form) Err(name string) string { return f.errs[name] }

// Failed reports whether the form has an error.
func (f *form) Failed() bool { return f.Note != "" || len(f.errs) > 0 }

// fail adds an error to a field.
func (f *form) fail(name, text string) {
	if f.errs[name] == "" {
		f.errs[name] = text
		f.list = append(f.list, fieldError{name, text})
	}
}

// take adds the violations of a fault to the fields that they name, and any other fault to the form.
// Violations of fields that the form does not have become its note. It returns errors that the user
// cannot correct.
func (f *form) take(err error, fields ...string) error {
	problem := fault.From(err)
	if problem == nil || problem.Code.Status() >= 500 {
		return err
	}
	if len(problem.Detail.Violations) == 0 {
		f.Note = problem.Message
	}
	for _, v := range problem.Detail.Violations {
		name, _, _ := strings.Cut(strings.TrimPrefix(v.Param, "/"), "/")
		known := false
		for _, field := range fields {
			known = known || field == name
		}
		if known {
			f.fail(name, v.Message)
		} else {
			f.Note = strings.TrimSpace(f.Note + " " + v.Message)
		}
	}
	return nil
}
