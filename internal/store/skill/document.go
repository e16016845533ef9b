package skill

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/parley-server/parley/internal/search"
	"github.com/parley-server/parley/internal/text"
)

// File is the name of a skill's file in its folder.
const File = "SKILL.md"

const (
	// MaxDocument is the maximum size of a SKILL.md in bytes.
	MaxDocument = 256 << 10

	maxDescription = 1024 // characters
)

// Problem is one error in a SKILL.md.
type Problem struct {
	Line    int
	Message string
}

func (p Problem) String() string { return fmt.Sprintf("line %d: %s", p.Line, p.Message) }

// Parse parses a SKILL.md: YAML between two lines of ---, then Markdown. It returns all problems at
// once, by line. It ignores fields that other agents write into the YAML.
func Parse(document string) (Skill, []Problem) {
	var p parser
	k := p.parseDocument(document)
	slices.SortStableFunc(p.problems, func(a, b Problem) int { return cmp.Compare(a.Line, b.Line) })
	return k, p.problems
}

type parser struct {
	problems []Problem
	inputs   int // so far
}

func (p *parser) addProblem(line int, format string, args ...any) {
	p.problems = append(p.problems, Problem{Line: line, Message: fmt.Sprintf(format, args...)})
}

const fence = "---"

func (p *parser) parseDocument(document string) (k Skill) {
	switch {
	case len(document) > MaxDocument:
		p.addProblem(1, "A %s is at most %d bytes long.", File, MaxDocument)
		return k
	case !text.IsStorable(document):
		p.addProblem(1, "A %s is UTF-8 text without NUL.", File)
		return k
	}
	front, text, ok := splitDocument(document)
	if !ok {
		p.addProblem(1, "A %s begins with a line %s, YAML with name and description, and another line %[2]s.", File, fence)
		return k
	}
	if k.Body = text; k.Body == "" {
		p.addProblem(1+strings.Count(document, "\n"), "The instructions are missing below the second line %s.", fence)
	}
	// A comment in place of the first line keeps the numbers of the others.
	dec := yaml.NewDecoder(strings.NewReader("#\n" + front))
	var root yaml.Node
	if err := dec.Decode(&root); err != nil && !errors.Is(err, io.EOF) {
		p.addSyntaxError(err)
		return k
	}
	if err := dec.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		p.addProblem(2, "There is more than one YAML document between the lines %s.", fence)
	}
	fields := &yaml.Node{Kind: yaml.MappingNode, Line: 2}
	if len(root.Content) > 0 {
		fields = root.Content[0]
	}
	p.parseFront(fields, &k)
	return k
}

// splitDocument splits a SKILL.md into its YAML and its Markdown.
func splitDocument(document string) (front, text string, ok bool) {
	document = strings.ReplaceAll(strings.TrimPrefix(document, "\uFEFF"), "\r\n", "\n")
	first, rest, _ := strings.Cut(document, "\n")
	if strings.TrimRight(first, " \t") != fence {
		return "", "", false
	}
	at := 0
	for line := range strings.Lines(rest) {
		if strings.TrimRight(line, " \t\n") == fence {
			return rest[:at], strings.TrimSpace(rest[at+len(line):]), true
		}
		at += len(line)
	}
	return "", "", false
}

// documentBody returns the Markdown of a stored SKILL.md.
func documentBody(document string) string {
	_, text, _ := splitDocument(document)
	return text
}

var yamlLine = regexp.MustCompile(`^yaml: (?:line (\d+): )?`)

// addSyntaxError reports an error of the YAML parser as a Problem.
func (p *parser) addSyntaxError(err error) {
	message, line := err.Error(), 2
	if m := yamlLine.FindStringSubmatch(message); m != nil {
		message = message[len(m[0]):]
		if n, err := strconv.Atoi(m[1]); err == nil {
			line = n
		}
	}
	p.addProblem(line, "This is not YAML: %s.", message)
}

// parseFront parses the fields of the YAML.
func (p *parser) parseFront(n *yaml.Node, k *Skill) {
	var name, description *yaml.Node
	p.eachMember(n, "The text between the lines "+fence, func(key string, line int, value *yaml.Node) {
		switch key {
		case "name":
			name = value
		case "description":
			description = value
		case "interface":
			k.Contract = p.parseContract(value)
		default:
			if near := search.Nearest(key, []string{"interface", "inputs"}, 1); len(near) > 0 {
				p.addProblem(line, "%q is not understood: a contract stands in interface, below it inputs.", key)
			}
		}
	})
	if p.isPresent(n, name, "name") {
		text, isText := p.parseText(name, "name")
		if _, ok := Fold(text); isText && (!ok || !written.MatchString(text)) {
			p.addProblem(name.Line, "A name is 1 to %d letters a-z and digits, with single - or _ between them.", MaxName)
		}
		k.Name = text
	}
	if p.isPresent(n, description, "description") {
		k.Description = p.parseDescription(description)
	}
}

func (p *parser) isPresent(n, field *yaml.Node, name string) bool {
	if field == nil {
		p.addProblem(n.Line, "The %s is missing.", name)
	}
	return field != nil
}

// parseDescription parses the purpose of a skill or an input.
func (p *parser) parseDescription(n *yaml.Node) string {
	text, ok := p.parseText(n, "description")
	if ok && (strings.TrimSpace(text) == "" || utf8.RuneCountInString(text) > maxDescription ||
		strings.ContainsFunc(text, func(r rune) bool { return unicode.IsControl(r) && r != '\n' })) {
		p.addProblem(n.Line, "A description is 1 to %d characters of text.", maxDescription)
	}
	return text
}

// parseText parses a string.
func (p *parser) parseText(n *yaml.Node, what string) (text string, ok bool) {
	if n.Kind != yaml.ScalarNode || n.ShortTag() != "!!str" {
		p.addProblem(n.Line, "%s is text; where it looks like something else, put it in quotes.", what)
		return "", false
	}
	return n.Value, true
}

// eachMember parses a mapping. what begins the error message for any other value.
func (p *parser) eachMember(n *yaml.Node, what string, do func(key string, line int, value *yaml.Node)) {
	if n.Kind != yaml.MappingNode {
		p.addProblem(n.Line, "%s is not names with values, one “name: value” a line.", what)
		return
	}
	seen := make(map[string]bool)
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		switch {
		case key.Kind != yaml.ScalarNode || key.ShortTag() != "!!str":
			p.addProblem(key.Line, "A name is text; where it looks like something else, put it in quotes.")
		case seen[key.Value]:
			p.addProblem(key.Line, "%s is there twice.", key.Value)
		default:
			seen[key.Value] = true
			do(key.Value, key.Line, n.Content[i+1])
		}
	}
}
