package docsite

import (
	"cmp"
	"fmt"
	"html/template"
	"slices"
	"strings"

	"github.com/parley-server/parley/internal/search"
)

// Reference is the API as the OpenAPI document describes it. It is immutable and safe for
// concurrent use.
type Reference struct {
	Version  string
	Text     template.HTML // the description of the API
	Headings []Heading
	Tags     []*Tag
	Limits   []Limit
	base     string // address of the overview
	byID     map[string]*Operation
	shared   map[*node]Response // most responses are those of many operations
}

// Tag is a group of operations.
type Tag struct {
	Name, Description string
	Operations        []*Operation
}

// Limit is a value of x-limits.
type Limit struct{ Name, Value string }

// Operation is one call, or a request that the service sends.
type Operation struct {
	ID, Path, Address string
	Method            string // in capitals, the path's for a webhook
	RequestPath       string // with its parameters in braces
	Summary           string
	Description       string
	Tag               string
	Scope             string // "" for public operations and webhooks
	Class             string // rate class, messages or calls
	Webhook           bool   // the service sends this request
	Specification     string // address of another specification
	Parameters        []Parameter
	Body              *Body
	Responses         []Response
}

// Parameter is a parameter of the path, the query or the headers.
type Parameter struct {
	Schema
	Name, In string
	Required bool
}

// Body is the body of a request.
type Body struct {
	Required bool
	Contents []Content
}

// Content is a body in one media type.
type Content struct {
	MediaType string
	Schema    Schema
	Examples  []Example
}

// Example is an example of a body.
type Example struct{ Name, Summary, Value string }

// Response is an answer of an operation.
type Response struct {
	Status, Description string
	Headers             []Parameter
	Contents            []Content
	Codes               []string // of an error
}

// IsError reports whether the status is one of an error.
func (r Response) IsError() bool { return r.Status >= "400" && r.Status < "600" }

// NewReference reads an OpenAPI document in JSON. base is the address of the overview.
func NewReference(document []byte, base string) (*Reference, error) {
	root, err := parseNode(document)
	if err != nil {
		return nil, err
	}
	r := &Reference{Version: root.str("info", "version"), base: base, byID: make(map[string]*Operation), shared: make(map[*node]Response)}
	if r.Text, r.Headings, err = renderText(root.str("info", "description")); err != nil {
		return nil, err
	}
	if limits := root.get("x-limits"); limits != nil {
		for _, name := range limits.names {
			r.Limits = append(r.Limits, Limit{strings.ReplaceAll(name, "_", " "), limits.str(name)})
		}
	}
	if tags := root.get("tags"); tags != nil {
		for _, tag := range tags.items {
			r.Tags = append(r.Tags, &Tag{Name: tag.str("name"), Description: tag.str("description")})
		}
	}
	for _, group := range []string{"paths", "webhooks"} {
		if err := r.addPaths(root.get(group), group == "webhooks"); err != nil {
			return nil, err
		}
	}
	r.Tags = slices.DeleteFunc(r.Tags, func(t *Tag) bool { return len(t.Operations) == 0 })
	r.shared = nil
	return r, nil
}

var methods = []string{"get", "post", "put", "patch", "delete"}

func (r *Reference) addPaths(paths *node, webhook bool) error {
	if paths == nil {
		return nil
	}
	for _, path := range paths.names {
		item := paths.get(path)
		for _, method := range item.names {
			if !slices.Contains(methods, method) {
				continue
			}
			op := r.newOperation(path, method, item, item.get(method))
			op.Webhook, op.Address = webhook, r.base+"/"+op.ID
			if op.ID == "" || r.byID[op.ID] != nil {
				return fmt.Errorf("the operation %s %s has the operationId %q, which is empty or not unique", op.Method, path, op.ID)
			}
			r.byID[op.ID] = op
			tag := r.tag(op.Tag)
			tag.Operations = append(tag.Operations, op)
		}
	}
	return nil
}

// tag returns the tag of a name. It adds those that the document does not list.
func (r *Reference) tag(name string) *Tag {
	for _, tag := range r.Tags {
		if tag.Name == name {
			return tag
		}
	}
	r.Tags = append(r.Tags, &Tag{Name: name})
	return r.Tags[len(r.Tags)-1]
}

func (r *Reference) newOperation(path, method string, item, n *node) *Operation {
	op := &Operation{
		ID: n.str("operationId"), Method: strings.ToUpper(method), RequestPath: path,
		Summary: n.str("summary"), Description: strings.TrimSpace(item.str("description") + "\n\n" + n.str("description")),
		Class: cmp.Or(n.str("x-limit"), "calls"), Specification: n.str("externalDocs", "url"), Tag: "other",
	}
	if tags := n.get("tags").list(); len(tags) > 0 {
		op.Tag = tags[0]
	}
	if scope := n.str("x-scope"); scope != "none" {
		op.Scope = scope
	}
	for _, list := range []*node{item.get("parameters"), n.get("parameters")} {
		if list != nil {
			for _, p := range list.items {
				op.Parameters = append(op.Parameters, newParameter(p.get(), p.str("name"), p.str("in")))
			}
		}
	}
	slices.SortStableFunc(op.Parameters, func(a, b Parameter) int {
		order := []string{"path", "query", "header"}
		return cmp.Compare(slices.Index(order, a.In), slices.Index(order, b.In))
	})
	if body := n.get("requestBody"); body != nil {
		op.Body = &Body{Required: body.isTrue("required"), Contents: contents(body)}
	}
	if responses := n.get("responses"); responses != nil {
		for _, status := range responses.names {
			n := responses.get(status)
			known, ok := r.shared[n]
			if !ok {
				known = newResponse(n)
				r.shared[n] = known
			}
			known.Status = status
			op.Responses = append(op.Responses, known)
		}
	}
	return op
}

func newParameter(p *node, name, in string) Parameter {
	s := describe(p.members["schema"])
	s.Description = cmp.Or(p.str("description"), s.Description)
	s.Example = cmp.Or(p.str("example"), s.Example)
	return Parameter{Schema: s, Name: name, In: in, Required: p.isTrue("required")}
}

func newResponse(n *node) Response {
	r := Response{Description: n.str("description"), Contents: contents(n)}
	if headers := n.get("headers"); headers != nil {
		for _, name := range headers.names {
			r.Headers = append(r.Headers, newParameter(headers.get(name), name, "header"))
		}
	}
	for _, c := range r.Contents {
		r.Codes = append(r.Codes, errorCodes(c.Schema)...)
	}
	return r
}

// errorCodes returns the values that error.code can have in a body.
func errorCodes(s Schema) (codes []string) {
	for _, f := range s.Fields {
		if f.Name == "error" {
			for _, member := range f.Fields {
				if member.Name == "code" {
					codes = append(codes, member.Values...)
				}
			}
		}
	}
	for _, v := range s.Variants {
		codes = append(codes, errorCodes(v)...)
	}
	return codes
}

func contents(n *node) (list []Content) {
	all := n.get("content")
	if all == nil {
		return nil
	}
	for _, media := range all.names {
		n := all.get(media)
		c := Content{MediaType: media, Schema: describe(n.members["schema"])}
		if e := n.members["example"]; e != nil {
			c.Examples = append(c.Examples, Example{Name: "example", Value: e.pretty()})
		}
		if examples := n.get("examples"); examples != nil {
			for _, name := range examples.names {
				e := examples.get(name)
				c.Examples = append(c.Examples, Example{Name: name, Summary: e.str("summary"), Value: e.get("value").pretty()})
			}
		}
		list = append(list, c)
	}
	return list
}

// Operation returns the operation with an id, or nil.
func (r *Reference) Operation(id string) *Operation { return r.byID[id] }

// Nearest returns operations whose ids resemble one that does not exist.
func (r *Reference) Nearest(id string) (near []*Operation) {
	var ids []string
	for known := range r.byID {
		ids = append(ids, known)
	}
	slices.Sort(ids)
	for _, found := range search.Nearest(id, ids, 3) {
		near = append(near, r.byID[found])
	}
	return near
}

// Sections returns a passage to search for each operation.
func (r *Reference) Sections() (all []search.Section) {
	for _, tag := range r.Tags {
		for _, op := range tag.Operations {
			text := []string{op.Method + " " + op.RequestPath, op.Description}
			for _, p := range op.Parameters {
				text = append(text, p.Name+": "+p.Description)
			}
			all = append(all, search.Section{Doc: op.Address, Title: op.Summary, Heading: op.ID, Line: 1, Text: strings.Join(text, "\n")})
		}
	}
	return all
}

// Title returns the name of the group as a heading.
func (t *Tag) Title() string { return strings.ToUpper(t.Name[:1]) + t.Name[1:] }

// ParameterGroup are the parameters in one place of the request.
type ParameterGroup struct {
	Title      string
	Parameters []Parameter
}

// Groups returns the parameters by their places.
func (op *Operation) Groups() (groups []ParameterGroup) {
	for _, place := range []struct{ in, title string }{{"path", "Path"}, {"query", "Query"}, {"header", "Headers"}} {
		g := ParameterGroup{Title: place.title}
		for _, p := range op.Parameters {
			if p.In == place.in {
				g.Parameters = append(g.Parameters, p)
			}
		}
		if len(g.Parameters) > 0 {
			groups = append(groups, g)
		}
	}
	return groups
}
