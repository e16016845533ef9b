package a2a

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"math"
	"strings"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/server/request"
	"github.com/parley-server/parley/internal/store/skill"
	"github.com/parley-server/parley/internal/turn"
)

// The limits of a message that the encoding does not define.
const (
	maxParts = 100
	maxModes = 50
)

// partsAt is the place of a message's content.
const partsAt = "/message/parts"

// extras are the fields of a message that metadata may contain, under the names that all protocols
// use.
var extras = []string{"skill", "input", "secret_input", "caller_id", "response_schema", "multitask_strategy", "limits"}

// incoming is a parsed message: the start of a task, or an answer to a task's question.
type incoming struct {
	turn.Request
	id       string           // the id of the message
	task     string           // the task of the message; "": a new one
	context  uuid.UUID        // the context of the message; uuid.Nil: not specified
	decision []request.Member // the answer; nil: none
	approval uuid.UUID        // the approval that it answers; uuid.Nil: the one that the task waits for
	besides  string           // place of content that is not a decision; "": none
	cursor   int64            // the caller's last frame of the task; 0: none

	immediately bool // the caller does not wait
	history     int  // maximum number of messages in the response; negative: all
	modes       modes
}

// parseMessage reads and checks the parameters of a message.
func (c *call) parseMessage() (incoming, error) {
	var in incoming
	if !c.params.Has("message") {
		c.params.Missing("message")
		return in, c.params.Err()
	}
	msg := c.params.Child("message")
	in.id = msg.RequiredString("messageId", request.MaxIdempotencyKey)
	if in.id != "" && !request.Printable(in.id) {
		msg.Add(fault.Violation{Param: msg.Pointer("messageId"), Rule: "format", Message: "messageId must be printable ASCII."})
	}
	role := "user"
	if c.version == v10 {
		role = "ROLE_USER"
	}
	if msg.Has("role") {
		msg.OneOf(msg.Pointer("role"), msg.Raw("role"), role)
	} else {
		msg.Missing("role")
	}
	in.task = msg.String("taskId", 255)
	if text := msg.String("contextId", 255); text != "" {
		var ok bool
		if in.context, ok = request.ID(text); !ok || in.context == uuid.Nil {
			msg.Add(fault.Violation{Param: msg.Pointer("contextId"), Rule: "format", Message: anew})
		}
	}
	c.parseConfiguration(&in)
	parts := c.parseParts(msg, &in)
	if in.task != "" {
		in.besides = cmp.Or(in.besides, extra(msg.Child("metadata")), extra(c.params.Child("metadata")))
	} else {
		c.request(&in, parts, msg.Child("metadata"))
	}
	if f := fault.From(c.params.Err()); f != nil {
		return in, emptyMessageError(f)
	}
	if c.unfit != nil {
		return in, c.unfit
	}
	in.IdempotencyKey, in.Named = "a2a:"+in.id, in.id
	hash := sha256.New()
	for _, raw := range []json.RawMessage{c.params.Raw("message"), c.params.Raw("metadata")} {
		var compact bytes.Buffer
		_ = json.Compact(&compact, raw) // it was parsed before; empty stays empty
		compact.WriteByte('\n')
		hash.Write(compact.Bytes())
	}
	in.Hash = hash.Sum(nil)
	return in, nil
}

// extra returns the path of a field in metadata that starts a task, or "".
func extra(meta request.Fields) string {
	for _, name := range extras {
		if meta.Has(name) {
			return meta.Pointer(name)
		}
	}
	return ""
}

// parseConfiguration parses how the caller wants to receive the result.
func (c *call) parseConfiguration(in *incoming) {
	conf := c.params.Child("configuration")
	rejectForeign(conf, c.version, map[version]map[string]string{
		v03: {"returnImmediately": "blocking", "taskPushNotificationConfig": "pushNotificationConfig"},
		v10: {"blocking": "returnImmediately", "pushNotificationConfig": "taskPushNotificationConfig"},
	}[c.version])
	push := "taskPushNotificationConfig"
	if c.version == v10 {
		in.immediately = conf.Bool("returnImmediately")
	} else {
		in.immediately = conf.Has("blocking") && !conf.Bool("blocking")
		push = "pushNotificationConfig"
	}
	in.history = conf.Int("historyLength", -1, 0, math.MaxInt32)
	in.modes = c.parseModes(conf)
	if conf.Has(push) {
		in.Callback = c.parseReceiver(conf.Child(push))
		// A receiver that a client sends with every message is registered once.
		in.Callback.Name = cmp.Or(in.Callback.Name, uuid.NewSHA1(uuid.NameSpaceURL, []byte(in.Callback.URL)).String())
	}
}

// request converts a message to the request for a turn. It checks the metadata like other protocols
// do, even if the message has other violations.
func (c *call) request(in *incoming, p parts, of request.Fields) {
	about := make(map[string]json.RawMessage)
	take := func(from request.Fields, names ...string) {
		for _, name := range names {
			raw := from.Raw(name)
			if raw == nil {
				continue
			}
			at := from.Pointer(name)
			if about[name] != nil && !alike(name, about[name], raw) {
				c.params.Add(fault.Violation{Param: at, Rule: "exactly_one", Message: at[1:] + " says something else than " + c.places[name][1:] + ". Say it once."})
			}
			about[name], c.places[name] = raw, at
		}
	}
	take(c.params.Child("metadata"), extras...)
	take(of, extras...)
	if p.skill != nil {
		take(*p.skill, "skill", "input")
	}
	c.places["command"], c.places["attachments"] = partsAt, partsAt
	data := p.dataParts()
	switch {
	case about["skill"] == nil:
		text := make([]string, len(p.said))
		for i, s := range p.said {
			if text[i] = s.text; s.data != nil {
				text[i] = string(s.data.Raw("data"))
			}
		}
		if len(text) == 0 && (c.unfit != nil || c.params.Err() != nil) {
			text = []string{"?"} // empty parts have their own violation
		}
		if len(text) > 0 {
			about["command"], _ = json.Marshal(strings.Join(text, "\n")) // a string cannot fail
		}
	case len(p.said) > len(data):
		c.params.Add(fault.Violation{Param: partsAt, Rule: "exactly_one", Message: "A skill takes its input as data. Send either a text or a skill, not both."})
	case about["input"] == nil && len(data) == 1:
		about["input"], c.places["input"] = data[0].Raw("data"), data[0].Pointer("data")
	case len(data) > 0:
		c.params.Add(fault.Violation{Param: partsAt, Rule: "exactly_one", Message: "A skill has one input. Send one data part with it."})
	}
	if len(p.files) > 0 {
		list := make([]map[string]uuid.UUID, len(p.files))
		for i, id := range p.files {
			list[i] = map[string]uuid.UUID{"file_id": id}
		}
		about["attachments"], _ = json.Marshal(list)
	}
	var body []request.Member
	for name, raw := range about {
		body = append(body, request.Member{Name: name, Value: raw})
	}
	push := in.Callback
	in.Request = c.params.Message(body, append([]string{"command", "attachments"}, extras...)).Request
	in.Callback, in.Session = push, in.context
}

// alike reports whether two values under one name of a message are equal.
func alike(name string, a, b json.RawMessage) bool {
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
