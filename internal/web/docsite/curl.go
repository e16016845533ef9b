package docsite

import (
	"encoding/json"
	"net/url"
	"regexp"
	"strings"
	"unicode"
)

var pathParameter = regexp.MustCompile(`\{(\w+)\}`)

// Curl returns a command that calls the operation at the address base.
func (op *Operation) Curl(base string) string {
	var b strings.Builder
	b.WriteString("curl")
	if op.streams() {
		b.WriteString(" -N")
	}
	if op.Method != "GET" && (op.Method != "POST" || op.Body == nil) {
		b.WriteString(" -X " + op.Method)
	}
	b.WriteString(` "` + base + op.examplePath() + `"`)
	line := func(text string) { b.WriteString(" \\\n  " + text) }
	if op.Scope != "" {
		line(`-H "Authorization: Bearer $PARLEY_API_KEY"`)
	}
	if op.Body != nil && len(op.Body.Contents) > 0 {
		content := op.Body.Contents[0]
		if !strings.HasPrefix(content.MediaType, "application/") && !strings.HasPrefix(content.MediaType, "text/") {
			line("--data-binary @FILE")
		} else {
			line("-H 'Content-Type: " + content.MediaType + "'")
			line("-d " + shellQuoted(op.ExampleBody()))
		}
	}
	return b.String()
}

func shellQuoted(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// streams reports whether the operation can answer with a stream.
func (op *Operation) streams() bool {
	for _, r := range op.Responses {
		for _, c := range r.Contents {
			if c.MediaType == "text/event-stream" {
				return true
			}
		}
	}
	return false
}

// examplePath returns the path with examples of its parameters, or the name of a shell variable.
// Required parameters of the query follow.
func (op *Operation) examplePath() string {
	path := pathParameter.ReplaceAllStringFunc(op.RequestPath, func(name string) string {
		return op.exampleOf(name[1 : len(name)-1])
	})
	separator := "?"
	for _, p := range op.Parameters {
		if p.In == "query" && p.Required {
			path += separator + url.QueryEscape(p.Name) + "=" + op.exampleOf(p.Name)
			separator = "&"
		}
	}
	return path
}

func (op *Operation) exampleOf(name string) string {
	for _, p := range op.Parameters {
		if p.Name == name && p.In != "header" && p.Example != "" {
			return p.Example
		}
	}
	var variable strings.Builder
	for _, r := range name {
		if unicode.IsUpper(r) {
			variable.WriteByte('_')
		}
		variable.WriteRune(unicode.ToUpper(r))
	}
	return "$" + variable.String()
}

// ExampleBody returns the first example of the body, or the smallest object that the schema
// suggests.
func (op *Operation) ExampleBody() string {
	if op.Body == nil || len(op.Body.Contents) == 0 {
		return ""
	}
	content := op.Body.Contents[0]
	if len(content.Examples) > 0 {
		return content.Examples[0].Value
	}
	return strings.TrimSpace(sample(content.Schema, ""))
}

// sample returns a value of a schema in JSON: of an object the required members.
func sample(s Schema, indent string) string {
	switch {
	case s.Example != "" && len(s.Fields) == 0:
		return jsonOf(s.Type, s.Example)
	case len(s.Values) > 0:
		return jsonOf(s.Type, s.Values[0])
	case len(s.Fields) > 0:
		var members []string
		for _, f := range s.Fields {
			if f.Required {
				members = append(members, indent+"  "+jsonOf("string", f.Name)+": "+sample(f.Schema, indent+"  "))
			}
		}
		object := "{\n" + strings.Join(members, ",\n") + "\n" + indent + "}"
		if len(members) == 0 {
			object = "{}"
		}
		if strings.HasPrefix(s.Type, "array") {
			return "[" + object + "]"
		}
		return object
	case len(s.Variants) > 0:
		return sample(s.Variants[0], indent)
	case strings.HasPrefix(s.Type, "array"):
		return "[]"
	case strings.HasPrefix(s.Type, "object"):
		return "{}"
	}
	return jsonOf(s.Type, map[string]string{"integer": "1", "number": "1", "boolean": "true"}[firstWord(s.Type)])
}

func firstWord(s string) string { word, _, _ := strings.Cut(s, " "); return word }

// jsonOf returns a value in JSON, quoted if its type is not one of numbers or booleans.
func jsonOf(kind, value string) string {
	switch firstWord(kind) {
	case "integer", "number", "boolean":
		return value
	}
	quoted, _ := json.Marshal(value) // a string cannot fail
	return string(quoted)
}
