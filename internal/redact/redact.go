// Package redact keeps secrets out of text that comes back: answers of servers,
// output of programs, errors. In place of a value it writes [secret:NAME].
//
// A value is found as it is, percent-encoded, escaped as in JSON or HTML (also where only some of
// its characters are, and twice over unless it looks escaped itself), in UTF-16, in hex as digits
// alone, and once in base64 of both alphabets wherever in the encoded text it begins; all of these
// also where lines are broken in between, and a value of several lines with LF and with CRLF. It
// promises that neither the number of secrets nor the way a stream is cut into reads changes what
// is found. It cannot find a value that was changed in any other way: reversed, compressed,
// encrypted, given out character by character, in quoted-printable, in hex with something between
// the bytes. Of a value in base64 the characters at its two ends that also depend on its neighbours
// may stay: at most four bits of it each.
package redact

import (
	"bytes"
	"encoding/hex"
	"net/http"
	"slices"
	"strings"
)

// Secret is a value that must not come back. The mark in place of a value shows that the text
// held it: a value that can be guessed must only be looked for where it is known to have been.
type Secret struct {
	Name  string
	Value []byte
}

// Redactor knows every form of its secrets. It is safe for concurrent use; a nil
// Redactor passes everything through.
type Redactor struct {
	automaton automaton
	dialects  []dialect
	marks     []string   // by the number of the secret
	names     [][]string // how a value looks in the name of a header, in lower case
	reach     int        // bytes of the longest match
	inert     [256]bool  // bytes that begin no form
}

// New makes a redactor. It ignores empty values.
func New(secrets ...Secret) *Redactor {
	r := &Redactor{automaton: newAutomaton()}
	var values [][]byte
	for _, s := range secrets {
		if len(s.Value) == 0 {
			continue
		}
		for _, form := range formsOf(s.Value) {
			r.automaton.addForm(form, len(r.marks))
		}
		values = append(values, s.Value)
		r.marks = append(r.marks, "[secret:"+s.Name+"]")
		r.names = append(r.names, []string{string(bytes.ToLower(s.Value)), hex.EncodeToString(s.Value)})
	}
	if len(r.marks) == 0 {
		return nil
	}
	r.automaton.linkNodes()
	r.dialects = readingsOf(values)
	r.reach = widest*r.automaton.longest + maxEscape
	for c := range r.inert {
		r.inert[c] = r.automaton.step(0, fold[c]) == 0
	}
	return r
}

// String returns s with a mark in place of every form of a secret.
func (r *Redactor) String(s string) string {
	if r == nil {
		return s
	}
	sc := newScanner(r)
	sc.scan([]byte(s))
	sc.finish()
	if len(sc.found) == 0 {
		return s
	}
	var out strings.Builder
	at := 0
	for _, f := range sc.found {
		out.WriteString(s[at:f.start])
		out.WriteString(r.marks[f.secret])
		at = f.end
	}
	out.WriteString(s[at:])
	return out.String()
}

// Header redacts the values of a header, and its names: names also in other upper
// and lower case, which proxies change.
func (r *Redactor) Header(h http.Header) {
	if r == nil {
		return
	}
	for name, values := range h {
		clean := make([]string, len(values))
		for i, v := range values {
			clean[i] = r.String(v)
		}
		safe := r.headerName(name)
		if safe == name {
			h[name] = clean
			continue
		}
		delete(h, name)
		h[safe] = append(h[safe], clean...)
	}
}

func (r *Redactor) headerName(name string) string {
	lower := strings.ToLower(name)
	for i, forms := range r.names {
		if slices.ContainsFunc(forms, func(form string) bool { return strings.Contains(lower, form) }) {
			return r.marks[i]
		}
	}
	return r.String(name)
}
