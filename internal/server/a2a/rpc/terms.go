package rpc

import (
	"fmt"
	"strings"

	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/session"
)

// NewContext is the remedy for a missing context.
const NewContext = "The context does not exist. Leave contextId out to begin a conversation, and take it from the answer, or make one " +
	"that is not a UUID of version 7."

// Translate translates a fault to this protocol's terms. It keeps the code. places are JSON
// Pointers to the fields that have another name here.
func Translate(f *fault.Error, places map[string]string) *fault.Error {
	told := *f
	told.Param, told.Message = translatePlace(places, f.Param, f.Message)
	told.Detail.Violations = nil
	for _, v := range f.Detail.Violations {
		if v.Param == "/callback" && v.Rule == "max_items" {
			v.Message = fmt.Sprintf("A task has at most %v push notification configs. Delete one first.", v.Expected)
			told.Message = v.Message
		}
		param, message := translatePlace(places, strings.TrimPrefix(v.Param, "/"), v.Message)
		v.Param, v.Message = "/"+param, message
		told.Detail.Violations = append(told.Detail.Violations, v)
	}
	switch f.Code {
	case fault.IdempotencyKeyReused:
		told.Param, told.Message = "message/messageId", "This messageId came with another message. Give every message an id of its own."
	case fault.SessionNotFound:
		told.Param, told.Message = "message/contextId", NewContext
	case fault.InvalidCursor:
		if f.Param == "cursor" {
			told.Param, told.Message = "pageToken", "This pageToken is of no page of tasks. Take nextPageToken of the page before, or begin "+
				"without one."
		}
	case fault.QueueFull:
		told.Message = strings.Replace(f.Message, "session", "context", 1)
	case fault.ApprovalAlreadyDecided:
		told.Message = strings.Replace(f.Message, "The turn", "The task", 1)
	case fault.TurnInProgress:
		told.Detail.Turn = nil // its addresses are of no use to this protocol's clients
		told.Message = "This context is still working on an earlier task. Wait for it, cancel it, or send the message " +
			"with multitask_strategy enqueue or interrupt in its metadata."
		if t, ok := f.Detail.Turn.(*session.ActiveTurn); ok && t.Pending.IsForUser() {
			told.Message = "This context has an earlier task that waits for an answer. Answer it, cancel it, or send the message " +
				"with multitask_strategy enqueue or interrupt in its metadata."
		}
	}
	return &told
}

// translatePlace translates a place of the REST request, and the message about it, to a place of
// this protocol. A message that names the place begins with it.
func translatePlace(places map[string]string, param, message string) (string, string) {
	name, rest, deeper := strings.Cut(param, "/")
	at, ok := places[name]
	if !ok {
		return param, message
	}
	if deeper {
		at += "/" + rest
	}
	at = strings.TrimPrefix(at, "/")
	if said, ok := strings.CutPrefix(message, param); ok {
		message = at + said
	}
	return at, message
}
