// Package placeholder knows where and how the name of a credential can stand in a request. The
// permission rules and the injector both read requests with it: a request that would get a value
// is one that asks.
package placeholder

import (
	"encoding/base64"
	"regexp"
	"strings"
)

// Prefix begins every placeholder of a run.
const Prefix = "ph_"

// names is a placeholder, as a run's environment has it, or a reference to a credential as
// http_request takes it.
var names = regexp.MustCompile(Prefix + `[A-Za-z0-9]{8}|\$\{`)

// Named reports whether a part of a request names a credential.
func Named(text string) bool { return names.MatchString(text) }

// NamedInHeader reports whether the value of a header names a credential in any form that the
// injector replaces.
func NamedInHeader(value string) bool {
	text, _ := Header(value)
	return Named(value) || Named(text)
}

// Header returns the text of a header's value in which placeholders are replaced, and a function
// that writes such a text as a value again. For HTTP's basic authentication the text is
// user:password, not their base64.
func Header(value string) (text string, write func(string) string) {
	const scheme = "Basic "
	if len(value) > len(scheme) && strings.EqualFold(value[:len(scheme)], scheme) {
		if plain, err := base64.StdEncoding.DecodeString(value[len(scheme):]); err == nil {
			return string(plain), func(s string) string { return value[:len(scheme)] + base64.StdEncoding.EncodeToString([]byte(s)) }
		}
	}
	return value, func(s string) string { return s }
}
