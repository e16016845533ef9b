package agui

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"github.com/parley-server/parley/internal/server"
	"github.com/parley-server/parley/internal/server/request"
	"github.com/parley-server/parley/internal/turn"
)

// input is the parsed request of a run.
type input struct {
	About
	said    *said // nil: the request has no message that could be new
	resume  []resume
	results []toolMessage
	ignored []string
}

// said is the last user message. Clients send the whole conversation with every run: beside a
// resume it may be the message of the interrupted turn, or a new one.
type said struct {
	text   string
	behind bool   // other content follows it, so it was sent before if it was new
	sent   []byte // the parts that identify the message when it is sent again
	turn.Request
	err error // why it is not a message, if there is a resume beside it
}

// maxID is the maximum length of a run's id.
const maxID = 200

// understood are the fields that have a meaning here, or that a caller cannot miss.
var understood = []string{"threadId", "runId", "parentRunId", "protocolVersion", "messages", "tools", "resume", "forwardedProps"}

// parseInput parses a request.
func parseInput(body []request.Member, r *server.Request) (in input, err error) {
	var c request.Checks
	r.Names["caller_id"] = "threadId"
	for _, name := range request.ExtensionFields {
		r.Names[name] = "forwardedProps/" + name
	}
	given := request.ByName(body)
	fields := request.Fields{Checks: &c, Members: request.Given(body)}
	if fields.Require("threadId") {
		in.Thread = c.Word("/threadId", given["threadId"], request.MaxCallerID)
	}
	if len(in.Thread) > request.MaxCallerID && len([]rune(in.Thread)) <= request.MaxCallerID {
		c.Longer("/threadId", "bytes", request.MaxCallerID)
	}
	if fields.Require("runId") {
		in.Run = c.Word("/runId", given["runId"], maxID)
	}
	_, in.Versioned = given["protocolVersion"]
	if raw, ok := given["resume"]; ok {
		in.resume = parseResume(&c, raw)
	}
	var list []request.ChatMessage
	if raw, ok := given["messages"]; ok && string(raw) != "[]" {
		in.Messages, list = raw, request.ChatMessages(&c, raw)
		in.results = parseToolMessages(&c, raw)
	}
	extensions := make(map[string]json.RawMessage)
	if raw, ok := given["forwardedProps"]; ok && raw[0] == '{' {
		extensions = request.ByName(request.Members(raw))
		delete(extensions, "caller_id") // the thread is the caller id
	}
	in.ignored = request.IgnoredFields(given, list, understood...)
	for _, name := range request.IgnoredFields(extensions, nil) {
		in.ignored = append(in.ignored, "forwardedProps/"+name)
	}
	n := len(list) - 1
	for in.resume != nil && n >= 0 && list[n].Role != "user" {
		n--
	}
	if n >= 0 && list[n].Role == "user" {
		own := &c
		if in.resume != nil { // an old message is not an error
			own = new(request.Checks)
		}
		r.Names["command"] = fmt.Sprintf("messages/%d/content", n)
		in.said = &said{text: request.MessageText(own, "/"+r.Names["command"], list[n].Content), behind: n < len(list)-1}
		in.said.Request = request.ComposeMessage(own, in.said.text, extensions)
		in.said.CallerID = in.Thread
		if raw, ok := given["tools"]; ok {
			in.said.Tools = own.ClientTools("/tools", raw, "parameters")
			r.Names["tools/*/input_schema"] = "parameters"
		}
		in.said.sent = in.identifyingParts(list[n].ID, extensions)
		if in.said.IdempotencyKey = own.Once(r.Header.Values("Idempotency-Key")); in.said.IdempotencyKey == "" {
			in.said.IdempotencyKey, r.Names["Idempotency-Key"] = in.onceKey(list[n].ID), fmt.Sprintf("messages/%d/id", n)
			if list[n].ID == "" {
				r.Names["Idempotency-Key"] = "runId"
			}
		}
		in.said.err = own.Err()
	}
	return in, c.Err()
}

// onceKey returns the key that identifies a message when it is sent again. Clients then begin
// another run, and the message keeps its id; a message without an id is identified by its run. A
// run that answers an interrupt may have the name of the one that asked.
func (in input) onceKey(id string) string {
	sum := sha256.New()
	if id != "" {
		fmt.Fprintf(sum, "%q %q %q", in.Thread, id, in.said.text)
		return "ag-ui-message:" + hex.EncodeToString(sum.Sum(nil))
	}
	fmt.Fprintf(sum, "%q %q", in.Thread, in.Run)
	for _, rs := range in.resume {
		fmt.Fprintf(sum, " %s", rs.id)
	}
	return "ag-ui:" + hex.EncodeToString(sum.Sum(nil))
}

// identifyingParts returns the parts of a request that identify the message: all but the history,
// the tools, which follow what a page shows, and the handling of a turn in progress.
func (in input) identifyingParts(id string, extensions map[string]json.RawMessage) []byte {
	kept := make(map[string]any)
	for _, name := range request.ExtensionFields {
		if raw, ok := extensions[name]; ok && name != "multitask_strategy" {
			kept[name] = raw
		}
	}
	kept["thread"], kept["message"], kept["text"] = in.Thread, id, in.said.text
	if id == "" {
		kept["run"] = in.Run
	}
	raw, _ := json.Marshal(kept) // all of it was parsed from JSON
	return raw
}
