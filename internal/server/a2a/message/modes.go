package message

import (
	"fmt"
	"strings"

	"github.com/parley-server/parley/internal/server/a2a/rpc"
	"github.com/parley-server/parley/internal/server/a2a/task"
	"github.com/parley-server/parley/internal/server/request"
)

// parseModes parses the accepted modes. It rejects a client that accepts neither text nor JSON.
func (p *Parser) parseModes(conf request.Fields) task.Modes {
	list := conf.Strings("acceptedOutputModes", maxModes)
	if len(list) == 0 {
		return task.Modes{Text: true, JSON: true}
	}
	var m task.Modes
	for _, mode := range list {
		switch mode, _, _ = strings.Cut(strings.ToLower(mode), ";"); strings.TrimSpace(mode) {
		case "text", "text/plain", "text/*", "text/markdown":
			m.Text = true
		case "data", "application/json", "application/*":
			m.JSON = true
		case "*/*", "*":
			m = task.Modes{Text: true, JSON: true}
		}
	}
	if !m.Text && !m.JSON {
		p.unfit = &rpc.Error{Code: rpc.ContentUnsupported, Message: fmt.Sprintf("An answer is %s or %s: acceptedOutputModes must allow one of "+
			"them.", task.TextType, task.JSONType)}
	}
	return m
}
