package request

import (
	"regexp"
	"strings"

	"github.com/parley-server/parley/internal/fault"
)

// Names maps our names of a message's fields to those of the caller's protocol: an error names only
// fields that the caller has sent.
type Names map[string]string

// TranslateError returns an error with the caller's names.
func (n Names) TranslateError(err error) error {
	f := fault.From(err)
	if f == nil || len(n) == 0 {
		return err
	}
	translated := *f
	translated.Message, translated.Param = n.translateMessage(f.Message, f.Param), n.translateParam(f.Param)
	translated.Detail.Violations = nil
	for _, v := range f.Detail.Violations {
		if name, pointer := strings.CutPrefix(v.Param, "/"); pointer {
			v.Message, v.Param = n.translateMessage(v.Message, name), "/"+n.translateParam(name)
		}
		translated.Detail.Violations = append(translated.Detail.Violations, v)
	}
	return &translated
}

// translateParam translates a path, whose first step may have another name. A name such as
// "tools/*/input_schema" is for the third step of a path.
func (n Names) translateParam(param string) string {
	steps := strings.Split(param, "/")
	if len(steps) > 2 {
		if theirs, ok := n[steps[0]+"/*/"+steps[2]]; ok {
			steps[2] = theirs
		}
	}
	if theirs, ok := n[steps[0]]; ok {
		steps[0] = theirs
	}
	return strings.Join(steps, "/")
}

// translateMessage translates a violation's text. It replaces only the first occurrence of the
// path: the rest may quote the caller.
func (n Names) translateMessage(text, param string) string {
	name, _, _ := strings.Cut(param, "/")
	theirs, ok := n[name]
	if !ok {
		return text
	}
	if at := regexp.MustCompile(`\b` + regexp.QuoteMeta(name) + `\b`).FindStringIndex(text); at != nil {
		return text[:at[0]] + theirs + text[at[1]:]
	}
	return text
}
