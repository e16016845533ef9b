package toolset

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/schema"
	"github.com/parley-server/parley/internal/text"
)

// maxPath is the longest path of a definition, in bytes.
const maxPath = 1024

// methods lists the methods of HTTP tools.
var methods = []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete}

var (
	memberName = regexp.MustCompile(`^[a-zA-Z0-9_.-]{1,64}$`) // which every provider accepts
	pathText   = regexp.MustCompile(`^(/([A-Za-z0-9._~!$&'()*+,;=:@-]|%[0-9A-Fa-f]{2}|\{[a-zA-Z0-9_.-]{1,64}\})*)*$`)
	// PathMember matches the place of a member of the input in a path.
	PathMember = regexp.MustCompile(`\{([a-zA-Z0-9_.-]{1,64})\}`)
)

// cleanHTTPTools returns tools as they are stored, with all violations.
func cleanHTTPTools(entry string, tools []HTTPTool) (clean []HTTPTool, vs []fault.Violation) {
	if n := len(tools); n == 0 || n > MaxTools {
		return nil, []fault.Violation{{Param: "/tools", Rule: "length", Message: fmt.Sprintf("An HTTP API has 1 to %d tools.", MaxTools)}}
	}
	for i, t := range tools {
		t.Name = cmp.Or(t.Name, entry)
		c := &httpCheck{at: "/tools/" + strconv.Itoa(i)}
		c.checkTexts(&t)
		if slices.ContainsFunc(clean, func(other HTTPTool) bool { return other.Name == t.Name }) {
			c.add("/name", "unique", "Another tool of the entry has the name %s, too.", t.Name)
		}
		if t.HTTP == nil {
			c.add("/http", "required", "The tool needs http with its method and path.")
		} else {
			c.checkRequest(&t)
		}
		clean, vs = append(clean, t), append(vs, c.violations...)
	}
	return clean, vs
}

// httpCheck collects the violations of a tool.
type httpCheck struct {
	at         string
	violations []fault.Violation
}

func (c *httpCheck) add(param, rule, message string, args ...any) {
	c.violations = append(c.violations, fault.Violation{Param: c.at + param, Rule: rule, Message: fmt.Sprintf(message, args...)})
}

// checkTexts checks what a tool shares with those of MCP servers.
func (c *httpCheck) checkTexts(t *HTTPTool) {
	if !plainName.MatchString(t.Name) || len(t.Name) > maxOwnName {
		c.add("/name", "format", "The name of a tool has letters, digits, - and _, at most %d.", maxOwnName)
	}
	if t.Label != nil && *t.Label != ReadOnly && *t.Label != Changes {
		c.add("/label", "enum", "The label of a tool is read_only or changes.")
	}
	if t.Description = cleanText(t.Description, MaxDescription+1); t.Description == "" {
		c.add("/description", "required", "The model needs a description of the tool.")
	} else if utf8.RuneCountInString(t.Description) > MaxDescription {
		c.add("/description", "max_length", "The description of a tool has at most %d characters.", MaxDescription)
	}
	t.Title = cleanText(t.Title, maxTitle)
	if t.Schema == nil {
		t.Schema = json.RawMessage(`{"type":"object","properties":{}}`)
	}
	o, wrong := cleanOffer(Offer{"x", t.Definition})
	if wrong != "" {
		c.add("/input_schema", "schema", "%s", wrong)
	}
	_, err := schema.Compile(o.Schema)
	if bad, ok := errors.AsType[*schema.Error](err); ok && wrong == "" {
		c.add("/input_schema"+bad.Path, "schema", "%s", bad.Reason)
	}
	t.Definition = o.Definition
}

// checkRequest checks the request of a tool, and completes it.
func (c *httpCheck) checkRequest(t *HTTPTool) {
	r := *t.HTTP
	r.Method, r.In = strings.ToUpper(r.Method), maps.Clone(r.In)
	if r.In == nil {
		r.In = make(map[string]Place)
	}
	t.HTTP = &r
	if !slices.Contains(methods, r.Method) {
		c.add("/http/method", "enum", "The method of a request is one of %s.", strings.Join(methods, ", "))
	}
	if r.Timeout != 0 && (r.Timeout < 1 || r.Timeout > int(MaxTimeout/time.Second)) {
		c.add("/http/timeout_seconds", "range", "The time for a call is 1 to %d seconds.", MaxTimeout/time.Second)
	}
	if !isPathTemplate(r.Path) {
		c.add("/http/path", "format", "The path of a request is like /customers/{id}: it begins with /, has no "+
			"query, and a member of the input in braces.")
	}
	var input struct {
		Properties map[string]json.RawMessage `json:"properties"`
		Required   []string                   `json:"required"`
	}
	if json.Unmarshal(t.Schema, &input) != nil {
		return // reported before
	}
	for _, name := range slices.Sorted(maps.Keys(input.Properties)) {
		if !memberName.MatchString(name) {
			c.add("/input_schema/properties/"+text.PointerToken(text.Truncate(name, 100)), "format", "A member of the input has a name "+
				"of 1 to 64 letters, digits, dots, - and _: not every model takes others.")
		}
		r.In[name] = r.placeOf(name)
	}
	c.checkPlaces(r, input.Properties)
	for _, m := range PathMember.FindAllStringSubmatch(r.Path, -1) {
		if _, known := input.Properties[m[1]]; !known || !slices.Contains(input.Required, m[1]) {
			c.add("/http/path", "format", "The path has {%s}, so the input schema needs the required property %s.", m[1], m[1])
		}
	}
}

// placeOf returns the place of a member of the input.
func (r Request) placeOf(name string) Place {
	switch {
	case r.In[name] != "":
		return r.In[name]
	case strings.Contains(r.Path, "{"+name+"}"):
		return InPath
	case r.Method == http.MethodGet || r.Method == http.MethodDelete:
		return InQuery
	}
	return InBody
}

// checkPlaces checks the places of the members of the input.
func (c *httpCheck) checkPlaces(r Request, properties map[string]json.RawMessage) {
	bodies := make(map[Place]int)
	for _, name := range slices.Sorted(maps.Keys(r.In)) {
		at, inPath := "/http/in/"+text.PointerToken(text.Truncate(name, 100)), strings.Contains(r.Path, "{"+name+"}")
		if _, known := properties[name]; !known {
			c.add(at, "unknown", "The input schema has no property %.100q.", name)
		}
		switch p := r.In[name]; {
		case (p == InPath) != inPath:
			c.add(at, "format", "A member of the input is in the path if, and only if, the path has it in braces.")
		case p == InPath || p == InQuery:
		case p != InBody && p != WholeBody:
			c.add(at, "enum", "The place of a member is path, query, body or whole_body.")
		case r.Method == http.MethodGet:
			c.add(at, "format", "A GET request has no body.")
		default:
			bodies[p]++
		}
	}
	if bodies[WholeBody] > 1 || bodies[WholeBody] > 0 && bodies[InBody] > 0 {
		c.add("/http/in", "format", "If one member of the input is the whole body, no other is in the body.")
	}
}

// isPathTemplate reports whether a path is a valid template.
func isPathTemplate(path string) bool {
	if len(path) > maxPath || !pathText.MatchString(path) {
		return false
	}
	return !slices.ContainsFunc(strings.Split(path, "/"), func(part string) bool { return part == "." || part == ".." })
}

// CompleteHTTPTool returns a tool of an entry as it would be stored. It does not report violations.
func CompleteHTTPTool(entry string, t HTTPTool) HTTPTool {
	clean, _ := cleanHTTPTools(entry, []HTTPTool{t})
	return clean[0]
}
