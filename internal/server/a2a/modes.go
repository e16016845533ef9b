package a2a

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/parley-server/parley/internal/server/request"
)

// modes are the media types that a caller accepts.
type modes struct{ text, json bool }

// result returns a structured answer as a part.
func (m modes) result(raw json.RawMessage) part {
	if m.json {
		return dataPart(raw)
	}
	return part{Text: new(string(raw)), MediaType: textType}
}

// parseModes parses the accepted modes. It rejects a client that accepts neither text nor JSON.
func (c *call) parseModes(conf request.Fields) modes {
	list := conf.Strings("acceptedOutputModes", maxModes)
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
