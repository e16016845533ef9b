package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/parley-server/parley/internal/app/demo"
	"github.com/parley-server/parley/internal/store/toolset"
	"github.com/parley-server/parley/internal/store/workspace"
	"github.com/parley-server/parley/internal/tool"
)

// startTickets starts the demo's tool server and lets tools reach it, and nothing else on this
// machine.
func (s *service) startTickets() (err error) {
	if s.DevDir == "" {
		return nil
	}
	if s.tickets, err = demo.StartTickets(); err != nil {
		return err
	}
	s.Config.EgressAllow = append([]string{s.tickets.Pin()}, s.Config.EgressAllow...)
	return nil
}

// demoTools registers the demo's tool server in a workspace without tool servers.
func (s *service) demoTools(ctx context.Context, w workspace.Workspace) error {
	list, err := s.toolset.List(ctx, w.ID)
	if err != nil || len(list) > 0 {
		return err
	}
	e := toolset.Entry{Name: "tickets", URL: demo.TicketsURL}
	offers, protocol, err := probeOf(s.runner, s.connector).List(ctx, w.ID, e.Server())
	if refused, ok := errors.AsType[tool.Refusal](err); ok {
		return fmt.Errorf("list the demo's tools: %s", string(refused))
	}
	if err != nil {
		return err
	}
	if _, _, err := s.toolset.Add(ctx, w.ID, e, protocol, offers); err != nil {
		return err
	}
	label := toolset.ReadOnly
	if _, err = s.toolset.SetTool(ctx, w.ID, e.Name, "list", &label, nil); err != nil {
		return err
	}
	_, err = s.toolset.AddHTTP(ctx, w.ID, toolset.Entry{Name: "order_supplies", URL: demo.APIURL},
		[]toolset.HTTPTool{{Definition: toolset.Definition{
			Description: "Order office supplies. The result is the number of the order.",
			Schema: json.RawMessage(
				`{"type":"object","properties":{"item":{"type":"string"}},"required":["item"],"additionalProperties":false}`),
			Annotations: toolset.Annotations{Idempotent: true}, HTTP: &toolset.Request{Method: http.MethodPost, Path: "/orders", Later: true},
		}}})
	return err
}
