package toolset

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/parley-server/parley/db"
	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/pgerr"
	"github.com/parley-server/parley/internal/replan"
)

// Request is how a call of a tool becomes a request to an HTTP API.
type Request struct {
	Method  string           `json:"method"`
	Path    string           `json:"path"`                      // template, added to the address of the entry: /customers/{id}
	In      map[string]Place `json:"in"`                        // place of each member of the input
	Timeout int              `json:"timeout_seconds,omitempty"` // 0: that of the entry
	Later   bool             `json:"later"`                     // 202 announces a result that will be posted
}

// Place is where a request has a member of the input.
type Place string

const (
	InPath    Place = "path"
	InQuery   Place = "query"
	InBody    Place = "body"       // a member of the JSON object that is the body
	WholeBody Place = "whole_body" // its value is the body
)

// HTTPTool is a tool of an HTTP API as an administrator defines it.
type HTTPTool struct {
	Name       string // ""; that of the entry
	Definition        // with HTTP
	Label      *Label // nil keeps the label; a new tool is labelled as changing
}

// AddHTTP adds an HTTP API with its tools.
func (s *Store) AddHTTP(ctx context.Context, workspace uuid.UUID, e Entry, tools []HTTPTool) (added Server, err error) {
	e.Kind = HTTP
	vs := e.Violations()
	tools, wrong := cleanHTTPTools(e.Name, tools)
	if vs = append(vs, wrong...); len(vs) > 0 {
		return added, fault.Invalid(vs...)
	}
	err = replan.InTx(ctx, s.pool, func(tx pgx.Tx) error {
		q := s.q.WithTx(tx)
		row, err := insertServer(ctx, q, workspace, e)
		if err != nil {
			return err
		}
		added, err = s.putHTTPTools(ctx, q, row, tools)
		return err
	})
	return added, err
}

// ReplaceHTTP replaces the tools of an HTTP API. A tool that stays keeps its label, unless the new one
// has another, and whether it is enabled.
func (s *Store) ReplaceHTTP(ctx context.Context, workspace uuid.UUID, name string, tools []HTTPTool) (changed Server, err error) {
	tools, vs := cleanHTTPTools(name, tools)
	err = replan.InTx(ctx, s.pool, func(tx pgx.Tx) error {
		q := s.q.WithTx(tx)
		row, err := lockServer(ctx, q, workspace, name)
		switch {
		case err != nil:
			return err
		case Kind(row.Kind) != HTTP:
			return fault.New(fault.ObjectConflict, "The tools of %s are those that its server offers. Refresh it.", name)
		case len(vs) > 0:
			return fault.Invalid(vs...)
		}
		changed, err = s.putHTTPTools(ctx, q, row, tools)
		return err
	})
	return changed, err
}

// putHTTPTools makes checked tools those of an entry.
func (s *Store) putHTTPTools(ctx context.Context, q *db.Queries, row db.ToolServer, tools []HTTPTool) (Server, error) {
	names := make([]string, len(tools))
	for i, t := range tools {
		names[i] = t.Name
	}
	if err := q.ToolDefinitionsElse(ctx, row.ID, names); err != nil {
		return Server{}, fmt.Errorf("remove tools: %w", err)
	}
	for i, t := range tools {
		raw, hash, err := t.encode()
		if err != nil {
			return Server{}, err
		}
		name := httpName(row.Name, t.Name)
		_, err = q.ToolDefinitionPut(ctx, db.ToolDefinitionPutParams{WorkspaceID: row.WorkspaceID, ServerID: row.ID, OwnName: t.Name, Name: name,
			Definition: raw, Hash: hash, Label: (*string)(t.Label)})
		if pgerr.IsUniqueViolation(err) {
			return Server{}, fault.Invalid(fault.Violation{Param: fmt.Sprintf("/tools/%d/name", i), Rule: "unique",
				Message: fmt.Sprintf("Another tool of the workspace has the name %s.", name)})
		}
		if err != nil {
			return Server{}, fmt.Errorf("write a tool: %w", err)
		}
	}
	if err := checkRoom(ctx, q, row.WorkspaceID); err != nil {
		return Server{}, err
	}
	return s.find(ctx, q, row.WorkspaceID, row.Name)
}

// httpName returns the name of a tool of an HTTP API as the model sees it. The tool with the name
// of its entry has no other.
func httpName(server, own string) string {
	if own == server {
		return server
	}
	return ModelName(server, own)
}
