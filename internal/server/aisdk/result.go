package aisdk

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/parley-server/parley/internal/server/request"
	"github.com/parley-server/parley/internal/strictjson"
	"github.com/parley-server/parley/internal/turn"
)

// resultPart is a part of a message with the result of a call that the client ran.
type resultPart struct {
	Type             string          `json:"type"`
	State            string          `json:"state"`
	ToolCallID       json.RawMessage `json:"toolCallId"`
	Output           json.RawMessage `json:"output"`
	ErrorText        json.RawMessage `json:"errorText"`
	ProviderExecuted bool            `json:"providerExecuted"` // the server ran it
	Preliminary      bool            `json:"preliminary"`
}

// The states of a call with a result.
const (
	outputAvailable = "output-available"
	outputError     = "output-error"
)

// resultParts returns the parts of a message with results of the client's own tools, by index.
func resultParts(raw json.RawMessage) map[int]resultPart {
	var parts []json.RawMessage
	_ = strictjson.Unmarshal(raw, &parts) // a value that is not an array has no parts
	found := make(map[int]resultPart)
	for i, p := range parts {
		var part resultPart
		if strictjson.Unmarshal(p, &part) != nil || part.ProviderExecuted || part.Preliminary {
			continue
		}
		isTool := part.Type == "dynamic-tool" || strings.HasPrefix(part.Type, "tool-")
		if isTool && (part.State == outputAvailable || part.State == outputError) {
			found[i] = part
		}
	}
	return found
}

// parseResults returns the results in an assistant's message.
func parseResults(c *request.Checks, param string, raw json.RawMessage) (list []turn.ToolResult) {
	found := resultParts(raw)
	for _, i := range slices.Sorted(maps.Keys(found)) {
		part, at := found[i], fmt.Sprintf("%s/%d", param, i)
		id := c.Word(at+"/toolCallId", request.OrEmptyText(part.ToolCallID), request.MaxName)
		if part.State == outputError {
			list = append(list, c.ClientResult(at+"/errorText", id, request.OrEmptyText(part.ErrorText), true))
			continue
		}
		output := part.Output
		if output == nil { // JSON has no undefined
			output = json.RawMessage("null")
		}
		list = append(list, c.ClientResult(at+"/output", id, output, false))
	}
	return list
}
