package docsite

import (
	"html/template"
	"regexp"
	"strings"
)

// colored marks comments, strings, names of JSON members and prompts. It is not a parser of a
// language: other code stays plain.
func colored(language, code string) string {
	tokens := colors[language]
	if tokens == nil {
		return template.HTMLEscapeString(code)
	}
	var b strings.Builder
	for code != "" {
		m := tokens.FindStringSubmatchIndex(code)
		if m == nil {
			break
		}
		b.WriteString(template.HTMLEscapeString(code[:m[0]]))
		for i, class := range tokens.SubexpNames() {
			if class != "" && m[2*i] >= 0 {
				b.WriteString(template.HTMLEscapeString(code[m[0]:m[2*i]]))
				b.WriteString(`<span class="t-` + class + `">` + template.HTMLEscapeString(code[m[2*i]:m[2*i+1]]) + `</span>`)
				b.WriteString(template.HTMLEscapeString(code[m[2*i+1]:m[1]]))
				break
			}
		}
		code = code[m[1]:]
	}
	return b.String() + template.HTMLEscapeString(code)
}

const (
	doubleQuoted = `"(?:[^"\\\n]|\\.)*"`
	singleQuoted = `'(?:[^'\\\n]|\\.)*'`
	slashed      = `(?P<c>(?:^|[\s;{}()])//[^\n]*|/\*(?s:.*?)\*/)`
)

// colors holds the tokens of each language: comment, string, member name, prompt, keyword.
var colors = func() map[string]*regexp.Regexp {
	shell := `(?P<c>(?m:(?:^|[ \t])#[^\n]*))|(?P<s>` + doubleQuoted + `|'[^']*')`
	script := slashed + `|(?P<s>` + doubleQuoted + `|` + singleQuoted + "|`[^`]*`)|" +
		`(?P<k>\b(?:import|export|from|const|let|function|async|await|return|if|else|for|of|while|new|throw|try|catch|typeof|class|extends|type|interface)\b)`
	all := map[string]string{
		"sh":      shell,
		"env":     shell,
		"console": `(?m:^(?P<p>[$>#] ))|(?P<c>(?m:[ \t]# [^\n]*))`,
		"json":    `(?P<n>` + doubleQuoted + `)\s*:|(?P<s>` + doubleQuoted + `)|(?P<k>\b(?:true|false|null)\b)`,
		"js":      script, "ts": script, "tsx": script,
		"go": slashed + `|(?P<s>` + doubleQuoted + "|`[^`]*`)|" +
			`(?P<k>\b(?:package|import|func|return|if|else|for|range|var|const|type|struct|switch|case|defer|go|select|break|continue)\b)`,
		"python": `(?P<c>(?m:(?:^|[ \t])#[^\n]*))|(?P<s>"""(?s:.*?)"""|` + doubleQuoted + `|` + singleQuoted + `)|` +
			`(?P<k>\b(?:import|from|def|return|if|elif|else|for|in|while|with|as|not|and|or|class|async|await|try|except|raise|None|True|False)\b)`,
		"sql":  `(?P<c>--[^\n]*)|(?P<s>'[^']*')|(?P<k>(?i:\b(?:select|from|where|and|or|join|on|using|group|order|by|limit|as|insert|into|update|set|delete|is|not|null)\b))`,
		"html": `(?P<c><!--(?s:.*?)-->)|(?P<k></?[a-zA-Z][\w-]*|/?>)|(?P<s>` + doubleQuoted + `)`,
	}
	compiled := make(map[string]*regexp.Regexp)
	for language, tokens := range all {
		compiled[language] = regexp.MustCompile(tokens)
	}
	return compiled
}()
