package a2a

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/wire"
)

// parts are what the parts of a message say.
type parts struct {
	text  []string
	skill *fields           // a data part that names one
	data  []json.RawMessage // of data parts that name nothing
	files []uuid.UUID
}

func (c *call) parts(msg fields, in *incoming) (p parts) {
	list := msg.objects("parts", maxParts)
	if len(list) == 0 && c.checks.Err() == nil {
		msg.missing("parts")
	}
	for _, part := range list {
		switch {
		case part.has("text"):
			if text, ok := part.Text(part.pointer("text"), part.raw("text")); ok && text != "" {
				p.text = append(p.text, text)
			}
		case part.has("data"):
			c.data(part, in, &p)
		case part.has("file"), part.has("url"), part.has("raw"):
			meta := part.object("metadata")
			if !meta.has("file_id") {
				c.unfit = &rpcError{Code: contentUnsupported, Message: "A file is uploaded first, with POST /api/v1/workspaces/" + c.caller.Workspace.Slug +
					`/files; then its part says so in metadata: {"file_id": …}.`, about: map[string]string{"field": part.at[1:]}}
				continue
			}
			p.files = append(p.files, meta.UUID(meta.pointer("file_id"), meta.raw("file_id")))
		default:
			part.Add(fault.Violation{Param: part.at, Rule: "required", Message: "A part has a text, data or a file."})
		}
	}
	return p
}

// data reads a data part: an answer, a skill with its input, a file, or anything else.
func (c *call) data(part fields, in *incoming, p *parts) {
	raw := part.raw("data")
	if raw[0] != '{' {
		if c.version == v03 {
			part.Type(part.pointer("data"), "object")
		}
		p.data = append(p.data, raw)
		return
	}
	data := fieldsOf(c.checks, part.pointer("data"), raw)
	switch {
	case in.task != "" && data.has("decision"):
		for _, m := range wire.Members(raw) {
			if m.Name == "approval_id" {
				in.approval = data.UUID(data.pointer("approval_id"), m.Value)
				continue
			}
			in.decision = append(in.decision, m)
		}
	case data.has("skill"):
		p.skill = &data
	case data.has("file_id"):
		p.files = append(p.files, data.UUID(data.pointer("file_id"), data.raw("file_id")))
	default:
		p.data = append(p.data, raw)
	}
}

// modes are the media types that a caller takes.
type modes struct{ text, json bool }

// accepted reads them. Who takes neither texts nor JSON could not be answered.
func (c *call) accepted(conf fields) modes {
	list := conf.words("acceptedOutputModes", maxModes)
	if len(list) == 0 {
		return modes{true, true}
	}
	var m modes
	for _, mode := range list {
		switch mode, _, _ = strings.Cut(strings.ToLower(mode), ";"); strings.TrimSpace(mode) {
		case "text", "text/plain", "text/*", "text/markdown":
			m.text = true
		case "data", "application/json", "application/*":
			m.json = true
		case "*/*", "*":
			m = modes{true, true}
		}
	}
	if !m.text && !m.json {
		c.unfit = &rpcError{Code: contentUnsupported, Message: fmt.Sprintf("An answer is %s or %s: acceptedOutputModes must allow one of them.", textType, jsonType)}
	}
	return m
}
