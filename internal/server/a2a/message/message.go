// Package message parses the messages of A2A to requests for turns, or to answers to the questions
// of tasks. A Dialect has what differs between the versions of the protocol.
package message

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"math"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/server/a2a/rpc"
	"github.com/parley-server/parley/internal/server/a2a/task"
	"github.com/parley-server/parley/internal/server/request"
	"github.com/parley-server/parley/internal/session"
	"github.com/parley-server/parley/internal/store/skill"
	"github.com/parley-server/parley/internal/turn"
)

// The limits of a message that the encoding does not define.
const (
	maxParts = 100
	maxModes = 50
)

// PartsAt is the place of a message's content.
const PartsAt = "/message/parts"

// extras are the fields of a message that metadata may contain, under the names that all protocols
// use.
var extras = []string{"agent", "agent_version", "skill", "input", "secret_input", "caller_id", "response_schema", "multitask_strategy",
	"limits", "effort"}

// Incoming is a parsed message: the start of a task, or an answer to a task's question.
type Incoming struct {
	turn.Request
	ID       string           // the id of the message
	Task     string           // the task of the message; "": a new one
	Context  uuid.UUID        // the context of the message, a session; uuid.Nil: not specified
	Made     string           // the context of the message by a name that the client has made; "": not specified
	Decision []request.Member // the answer; nil: none
	Approval uuid.UUID        // the approval that it answers; uuid.Nil: the one that the task waits for
	Code     *session.Code    // the code of the approval that it answers; nil: not specified
	Besides  string           // place of content that is not a decision; "": none
	Cursor   int64            // the caller's last frame of the task; 0: none

	Immediately bool // the caller does not wait
	History     int  // maximum number of messages in the response; negative: all
	Modes       task.Modes
}

// labels are the fields of metadata that a message may have beside a decision, too.
var labels = []string{"user", "metadata"}

// Parse reads and checks the parameters of a message.
func (p *Parser) Parse() (Incoming, error) {
	var in Incoming
	if !p.Params.Has("message") {
		p.Params.Missing("message")
		return in, p.Params.Err()
	}
	msg := p.Params.Child("message")
	in.ID = msg.RequiredString("messageId", request.MaxIdempotencyKey)
	if in.ID != "" && !request.Printable(in.ID) {
		msg.Add(fault.Violation{Param: msg.Pointer("messageId"), Rule: "format", Message: "messageId must be printable ASCII."})
	}
	if msg.Has("role") {
		msg.OneOf(msg.Pointer("role"), msg.Raw("role"), p.Role)
	} else {
		msg.Missing("role")
	}
	in.Task = msg.String("taskId", 255)
	p.parseContext(&in, msg)
	p.parseConfiguration(&in)
	list := p.parseParts(msg, &in)
	if in.Task != "" {
		list.parseWord(&in)
		in.Besides = cmp.Or(in.Besides, extraField(msg.Child("metadata")), extraField(p.Params.Child("metadata")))
	} else {
		p.parseTurnRequest(&in, list, msg.Child("metadata"))
	}
	if f := fault.From(p.Params.Err()); f != nil {
		return in, emptyMessageError(f)
	}
	if p.unfit != nil {
		return in, p.unfit
	}
	in.IdempotencyKey, in.Named = "a2a:"+in.ID, in.ID
	hash := sha256.New()
	for _, raw := range []json.RawMessage{p.Params.Raw("message"), p.Params.Raw("metadata")} {
		var compact bytes.Buffer
		_ = json.Compact(&compact, raw) // it was parsed before; empty stays empty
		compact.WriteByte('\n')
		hash.Write(compact.Bytes())
	}
	in.Hash = hash.Sum(nil)
	return in, nil
}

// maxContext is the maximum length of the name that a client makes for a context, in bytes.
const maxContext = 200

// parseContext parses the context of a message. The ids of sessions have version 7: such an id is not
// a name that a client has made, or a context that is gone would begin again without its history.
func (p *Parser) parseContext(in *Incoming, msg request.Fields) {
	text, at := msg.String("contextId", 255), msg.Pointer("contextId")
	id, ok := request.ID(text)
	switch {
	case text == "":
	case ok && id.Version() == 7:
		in.Context = id
	case ok && id == uuid.Nil:
		msg.Add(fault.Violation{Param: at, Rule: "format", Message: rpc.NewContext})
	case len(text) > maxContext:
		msg.Longer(at, "bytes", maxContext)
	default:
		in.Made = text
	}
}

// extraField returns the path of a field in metadata that starts a task, or "".
func extraField(meta request.Fields) string {
	for _, name := range extras {
		if meta.Has(name) {
			return meta.Pointer(name)
		}
	}
	return ""
}

// parseConfiguration parses how the caller wants to receive the result.
func (p *Parser) parseConfiguration(in *Incoming) {
	conf := p.Params.Child("configuration")
	p.rejectForeign(conf, p.Foreign)
	in.Immediately = conf.Bool("returnImmediately")
	if p.Blocking {
		in.Immediately = conf.Has("blocking") && !conf.Bool("blocking")
	}
	in.History = conf.Int("historyLength", -1, 0, math.MaxInt32)
	in.Modes = p.parseModes(conf)
	if conf.Has(p.Push) {
		in.Callback = p.Receiver(conf.Child(p.Push))
		// A receiver that a client sends with every message is registered once.
		in.Callback.Name = cmp.Or(in.Callback.Name, uuid.NewSHA1(uuid.NameSpaceURL, []byte(in.Callback.URL)).String())
	}
}

// parseTurnRequest converts a message to the request for a turn. It checks the metadata like other
// protocols do, even if the message has other violations.
func (p *Parser) parseTurnRequest(in *Incoming, content parts, of request.Fields) {
	about := make(map[string]json.RawMessage)
	take := func(from request.Fields, names ...string) {
		for _, name := range names {
			raw := from.Raw(name)
			if raw == nil {
				continue
			}
			at := from.Pointer(name)
			if about[name] != nil && !isEqualValue(name, about[name], raw) {
				p.Params.Add(fault.Violation{Param: at, Rule: "exactly_one",
					Message: at[1:] + " says something else than " + p.Places[name][1:] + ". Say it once."})
			}
			about[name], p.Places[name] = raw, at
		}
	}
	take(p.Params.Child("metadata"), extras...)
	take(of, extras...)
	take(p.Params.Child("metadata"), labels...)
	take(of, labels...)
	if content.skill != nil {
		take(*content.skill, "skill", "input")
	}
	p.Places["command"], p.Places["attachments"] = PartsAt, PartsAt
	data := content.dataParts()
	switch {
	case about["skill"] == nil:
		text := make([]string, len(content.said))
		for i, s := range content.said {
			if text[i] = s.text; s.data != nil {
				text[i] = string(s.data.Raw("data"))
			}
		}
		if len(text) == 0 && (p.unfit != nil || p.Params.Err() != nil) {
			text = []string{"?"} // empty parts have their own violation
		}
		if len(text) > 0 {
			about["command"], _ = json.Marshal(strings.Join(text, "\n")) // a string cannot fail
		}
	case len(content.said) > len(data):
		p.Params.Add(fault.Violation{Param: PartsAt, Rule: "exactly_one",
			Message: "A skill takes its input as data. Send either a text or a skill, not both."})
	case about["input"] == nil && len(data) == 1:
		about["input"], p.Places["input"] = data[0].Raw("data"), data[0].Pointer("data")
	case len(data) > 0:
		p.Params.Add(fault.Violation{Param: PartsAt, Rule: "exactly_one", Message: "A skill has one input. Send one data part with it."})
	}
	if len(content.files) > 0 {
		list := make([]map[string]uuid.UUID, len(content.files))
		for i, id := range content.files {
			list[i] = map[string]uuid.UUID{"file_id": id}
		}
		about["attachments"], _ = json.Marshal(list)
	}
	var body []request.Member
	for name, raw := range about {
		body = append(body, request.Member{Name: name, Value: raw})
	}
	push := in.Callback
	in.Request = p.Params.Message(body, slices.Concat([]string{"command", "attachments"}, extras, labels)).Request
	in.Callback, in.Session = push, in.Context
	if in.Made != "" && in.CallerID != "" {
		p.Params.Add(fault.Violation{Param: p.Places["caller_id"], Rule: "exactly_one",
			Message: "A contextId of your own and caller_id both name a conversation. Send one of them."})
	}
}

// isEqualValue reports whether two values under one name of a message are equal.
func isEqualValue(name string, a, b json.RawMessage) bool {
	var one, other string
	if name == "skill" && json.Unmarshal(a, &one) == nil && json.Unmarshal(b, &other) == nil {
		one, _ = skill.Fold(one)
		other, _ = skill.Fold(other)
		return one == other
	}
	return bytes.Equal(a, b)
}

// emptyMessageError returns the error for a message without content in this protocol's terms.
func emptyMessageError(f *fault.Error) error {
	for i := range f.Detail.Violations {
		if v := &f.Detail.Violations[i]; v.Param == "/command" && (v.Rule == "exactly_one" || v.Rule == "min_length") {
			v.Message = "message has neither a text nor a skill. Send one of them."
		}
	}
	return fault.Invalid(f.Detail.Violations...)
}
