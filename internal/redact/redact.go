// Package redact removes secrets from text for models and users: responses of servers, output of
// programs, errors. It replaces a value with [secret:NAME].
//
// It finds a value unchanged, percent-encoded, escaped as in JSON or HTML (even if only some of its
// characters are escaped, and twice over unless the value looks escaped itself), in UTF-16, in hex
// as digits alone, and once in base64 of both alphabets at any offset in the encoded text; all of
// these also with line breaks in between, and a value of several lines with LF and with CRLF. It
// promises that neither the number of secrets nor the way a stream is split into reads changes the
// result. It cannot find a value that was changed in any other way: reversed, compressed,
// encrypted, printed character by character, in quoted-printable, in hex with separators between
// the bytes. In base64, the characters at the two ends of a value that also depend on its
// neighbours may stay: each contains at most four bits of the value.
package redact

import (
	"bytes"
	"encoding/hex"
	"net/http"
	"slices"
	"strings"
)

// Secret is a value that must be removed. The mark in place of a value reveals that the text
// contained it: a value that can be guessed must only be searched in text that is known to have
// contained it.
type Secret struct {
	Name  string
	Value []byte
}

// Redactor contains every form of its secrets. It is safe for concurrent use; a nil Redactor passes
// everything through.
type Redactor struct {
	automaton automaton
	dialects  []dialect
	marks     []string   // by the number of the secret
	names     [][]string // forms of a value in the name of a header, in lower case
	reach     int        // bytes of the longest match
	inert     [256]bool  // bytes that begin no form
}

// New returns a redactor. It ignores empty values.
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

// Header redacts the names and values of a header. It finds names regardless of case, which proxies
// change.
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
