package a2a

import (
	"cmp"
	"encoding/json"
	"math"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/server/request"
)

// parts is the parsed content of a message.
type parts struct {
	said  []saying
	skill *request.Fields // the data of a part that names a skill
	files []uuid.UUID
}

// saying is a text, or a data part that names no skill, file or decision.
type saying struct {
	text string
	data *request.Fields // nil: a text
}

// dataParts returns the data parts among the sayings.
func (p parts) dataParts() (list []*request.Fields) {
	for _, s := range p.said {
		if s.data != nil {
			list = append(list, s.data)
		}
	}
	return list
}

func (c *call) parseParts(msg request.Fields, in *incoming) (p parts) {
	list := msg.Children("parts", maxParts)
	if len(list) == 0 && c.params.Err() == nil {
		msg.Missing("parts")
	}
	for _, part := range list {
		switch c.parseKind(part) {
		case "":
		case "text":
			if text, ok := part.Text(part.Pointer("text"), part.Raw("text")); ok && text != "" {
				p.said = append(p.said, saying{text: text})
				in.beside(part)
			}
		case "data":
			c.parseData(part, in, &p)
		default:
			in.beside(part)
			meta := part.Child("metadata")
			if !meta.Has("file_id") || carries(part) {
				c.unfit = &rpcError{Code: contentUnsupported, Message: "A file is uploaded first, with POST /api/v1/workspaces/" + c.caller.Workspace.Slug +
					`/files; then its part says so in metadata: {"file_id": …}.`, about: map[string]string{"field": part.At[1:]}}
				continue
			}
			p.attach(meta)
		}
	}
	return p
}

// attach records the file of a part. A malformed id is a violation at its own place.
func (p *parts) attach(of request.Fields) {
	if id := of.UUID(of.Pointer("file_id"), of.Raw("file_id")); id != uuid.Nil {
		p.files = append(p.files, id)
	}
}

// carries reports whether a file part contains the bytes of its file, which would be lost.
func carries(part request.Fields) bool {
	return part.String("raw", math.MaxInt) != "" || part.Child("file").String("bytes", math.MaxInt) != ""
}

// kinds are the content members of a part, of which it has exactly one.
var kinds = map[version][]string{v03: {"text", "data", "file"}, v10: {"text", "data", "url", "raw"}}

// parseKind returns the kind of a part, "" if it is unknown.
func (c *call) parseKind(part request.Fields) string {
	if rejectForeign(part, c.version, map[version]map[string]string{v03: {"url": "file", "raw": "file"}, v10: {"file": "url"}}[c.version]) {
		return ""
	}
	var given []string
	for _, name := range kinds[c.version] {
		if part.Has(name) {
			given = append(given, name)
		}
	}
	one := "A part has one of " + strings.Join(kinds[c.version], ", ") + "."
	switch {
	case len(given) == 0:
		part.Add(fault.Violation{Param: part.At, Rule: "required", Message: one})
		return ""
	case len(given) > 1:
		part.Add(fault.Violation{Param: part.At, Rule: "exactly_one", Message: one + " Send each in a part by itself."})
		return ""
	case c.version == v10:
		return given[0]
	case !part.Has("kind"):
		part.Missing("kind")
		return ""
	}
	if kind := part.OneOf(part.Pointer("kind"), part.Raw("kind"), kinds[v03]...); kind != given[0] {
		if kind != "" {
			part.Add(fault.Violation{Param: part.Pointer("kind"), Rule: "enum", Message: "The part is of the kind " + given[0] + ", by what it has."})
		}
		return ""
	}
	return given[0]
}

// parseData reads a data part: an answer, a skill with its input, a file, or anything else.
func (c *call) parseData(part request.Fields, in *incoming, p *parts) {
	raw := part.Raw("data")
	if raw[0] != '{' {
		in.beside(part)
		if c.version == v03 {
			part.Type(part.Pointer("data"), "object")
		}
		p.said = append(p.said, saying{data: &part})
		return
	}
	data := part.Nested(part.Pointer("data"), raw)
	switch {
	case in.task != "" && data.Has("decision") && in.decision == nil:
		for _, m := range request.Given(request.Members(raw)) {
			if m.Name == "approval_id" {
				in.approval = data.UUID(data.Pointer("approval_id"), m.Value)
				continue
			}
			in.decision = append(in.decision, m)
			c.places[m.Name] = data.Pointer(m.Name)
		}
		return
	case data.Has("skill"):
		only(data, raw, "skill", "input")
		if p.skill != nil {
			data.Add(fault.Violation{Param: part.At, Rule: "exactly_one", Message: "A message calls one skill. Send a message for each."})
		}
		p.skill = &data
	case data.Has("file_id"):
		only(data, raw, "file_id")
		p.attach(data)
	default:
		p.said = append(p.said, saying{data: &part})
	}
	in.beside(part)
}

// only rejects additional members of an object, which would be lost.
func only(f request.Fields, object json.RawMessage, names ...string) {
	for _, m := range request.Members(object) {
		if string(m.Value) != "null" && !slices.Contains(names, m.Name) {
			f.Unknown("member", f.Pointer(m.Name), m.Name, names)
		}
	}
}

// beside records a part that is not a decision.
func (in *incoming) beside(part request.Fields) { in.besides = cmp.Or(in.besides, part.At) }
