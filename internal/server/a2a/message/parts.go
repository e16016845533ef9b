package message

import (
	"cmp"
	"encoding/json"
	"math"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/server/a2a/rpc"
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

func (p *Parser) parseParts(msg request.Fields, in *Incoming) (found parts) {
	list := msg.Children("parts", maxParts)
	if len(list) == 0 && p.Params.Err() == nil {
		msg.Missing("parts")
	}
	for _, part := range list {
		switch p.parseKind(part) {
		case "":
		case "text":
			if text, ok := part.Text(part.Pointer("text"), part.Raw("text")); ok && text != "" {
				found.said = append(found.said, saying{text: text})
				in.recordBeside(part)
			}
		case "data":
			p.parseData(part, in, &found)
		default:
			in.recordBeside(part)
			meta := part.Child("metadata")
			if !meta.Has("file_id") || hasBytes(part) {
				p.unfit = &rpc.Error{Code: rpc.ContentUnsupported, Message: "A file is uploaded first, with POST /api/v1/workspaces/" + p.Workspace +
					`/files; then its part says so in metadata: {"file_id": …}.`, About: map[string]string{"field": part.At[1:]}}
				continue
			}
			found.recordFile(meta)
		}
	}
	return found
}

// recordFile records the file of a part. A malformed id is a violation at its own place.
func (p *parts) recordFile(of request.Fields) {
	if id := of.UUID(of.Pointer("file_id"), of.Raw("file_id")); id != uuid.Nil {
		p.files = append(p.files, id)
	}
}

// hasBytes reports whether a file part contains the bytes of its file, which would be lost.
func hasBytes(part request.Fields) bool {
	return part.String("raw", math.MaxInt) != "" || part.Child("file").String("bytes", math.MaxInt) != ""
}

// parseKind returns the kind of a part, "" if it is unknown.
func (p *Parser) parseKind(part request.Fields) string {
	if p.rejectForeign(part, p.ForeignParts) {
		return ""
	}
	var given []string
	for _, name := range p.Kinds {
		if part.Has(name) {
			given = append(given, name)
		}
	}
	one := "A part has one of " + strings.Join(p.Kinds, ", ") + "."
	switch {
	case len(given) == 0:
		part.Add(fault.Violation{Param: part.At, Rule: "required", Message: one})
		return ""
	case len(given) > 1:
		part.Add(fault.Violation{Param: part.At, Rule: "exactly_one", Message: one + " Send each in a part by itself."})
		return ""
	case !p.Typed:
		return given[0]
	case !part.Has("kind"):
		part.Missing("kind")
		return ""
	}
	if kind := part.OneOf(part.Pointer("kind"), part.Raw("kind"), p.Kinds...); kind != given[0] {
		if kind != "" {
			part.Add(fault.Violation{Param: part.Pointer("kind"), Rule: "enum",
				Message: "The part is of the kind " + given[0] + ", by what it has."})
		}
		return ""
	}
	return given[0]
}

// parseData reads a data part: an answer, a skill with its input, a file, or anything else.
func (p *Parser) parseData(part request.Fields, in *Incoming, to *parts) {
	raw := part.Raw("data")
	if raw[0] != '{' {
		in.recordBeside(part)
		if p.Typed {
			part.Type(part.Pointer("data"), "object")
		}
		to.said = append(to.said, saying{data: &part})
		return
	}
	data := part.Nested(part.Pointer("data"), raw)
	switch {
	case in.Task != "" && data.Has("decision") && in.Decision == nil:
		for _, m := range request.Given(request.Members(raw)) {
			if m.Name == "approval_id" {
				in.Approval = data.UUID(data.Pointer("approval_id"), m.Value)
				continue
			}
			in.Decision = append(in.Decision, m)
			p.Places[m.Name] = data.Pointer(m.Name)
		}
		return
	case data.Has("skill"):
		rejectOthers(data, raw, "skill", "input")
		if to.skill != nil {
			data.Add(fault.Violation{Param: part.At, Rule: "exactly_one", Message: "A message calls one skill. Send a message for each."})
		}
		to.skill = &data
	case data.Has("file_id"):
		rejectOthers(data, raw, "file_id")
		to.recordFile(data)
	default:
		to.said = append(to.said, saying{data: &part})
	}
	in.recordBeside(part)
}

// rejectOthers rejects additional members of an object, which would be lost.
func rejectOthers(f request.Fields, object json.RawMessage, names ...string) {
	for _, m := range request.Members(object) {
		if string(m.Value) != "null" && !slices.Contains(names, m.Name) {
			f.Unknown("member", f.Pointer(m.Name), m.Name, names)
		}
	}
}

// recordBeside records a part that is not a decision.
func (in *Incoming) recordBeside(part request.Fields) { in.Besides = cmp.Or(in.Besides, part.At) }

// parseWord reads a message that is only the text `allow CODE` or `deny CODE [reason]` as a
// decision.
func (p parts) parseWord(in *Incoming) {
	if len(p.said) != 1 || p.said[0].data != nil || p.skill != nil || len(p.files) > 0 || in.Decision != nil {
		return
	}
	said := request.ParseWord(p.said[0].text)
	if !said.Coded || said.Kind != request.Allow && said.Kind != request.Deny {
		return
	}
	in.Code, in.Besides = &said.Code, ""
	in.Decision = []request.Member{{Name: "decision", Value: request.QuoteText(said.Kind)}}
	if said.Reason != "" {
		in.Decision = append(in.Decision, request.Member{Name: "reason", Value: request.QuoteText(said.Reason)})
	}
}
