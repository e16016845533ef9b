package admin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/server/request"
	"github.com/parley-server/parley/internal/store/toolset"
	"github.com/parley-server/parley/internal/tool/openapi"
)

// requestFields are the members of the request of a tool.
var requestFields = []request.Field[toolset.Request]{
	{Name: "method", Parse: func(c *request.Checks, at string, raw json.RawMessage, r *toolset.Request) {
		r.Method = c.Word(at, raw, 10)
	}},
	{Name: "path", Parse: func(c *request.Checks, at string, raw json.RawMessage, r *toolset.Request) {
		r.Path = c.Word(at, raw, 1024)
	}},
	{Name: "in", Parse: func(c *request.Checks, at string, raw json.RawMessage, r *toolset.Request) {
		if json.Unmarshal(raw, &r.In) != nil {
			c.Type(at, "object")
		}
	}},
	{Name: "timeout_seconds", Parse: func(c *request.Checks, at string, raw json.RawMessage, r *toolset.Request) {
		r.Timeout = c.Integer(at, raw, 1, int(toolset.MaxTimeout.Seconds()))
	}},
	{Name: "later", Parse: func(c *request.Checks, at string, raw json.RawMessage, r *toolset.Request) {
		r.Later = c.Boolean(at, raw)
	}},
}

// httpToolFields are the members of a tool of an HTTP API.
var httpToolFields = []request.Field[toolset.HTTPTool]{
	{Name: "name", Parse: func(c *request.Checks, at string, raw json.RawMessage, t *toolset.HTTPTool) {
		t.Name = c.Word(at, raw, 200)
	}},
	{Name: "title", Parse: func(c *request.Checks, at string, raw json.RawMessage, t *toolset.HTTPTool) {
		t.Title = c.Word(at, raw, 200)
	}},
	{Name: "description", Parse: func(c *request.Checks, at string, raw json.RawMessage, t *toolset.HTTPTool) {
		t.Description = c.Word(at, raw, toolset.MaxDescription)
	}},
	{Name: "input_schema", Parse: func(c *request.Checks, at string, raw json.RawMessage, t *toolset.HTTPTool) {
		if c.Object(at, raw) {
			t.Schema = raw
		}
	}},
	{Name: "label", Parse: func(c *request.Checks, at string, raw json.RawMessage, t *toolset.HTTPTool) {
		t.Label = new(toolset.Label(c.OneOf(at, raw, string(toolset.ReadOnly), string(toolset.Changes))))
	}},
	{Name: "idempotent", Parse: func(c *request.Checks, at string, raw json.RawMessage, t *toolset.HTTPTool) {
		t.Annotations.Idempotent = c.Boolean(at, raw)
	}},
	{Name: "http", Parse: func(c *request.Checks, at string, raw json.RawMessage, t *toolset.HTTPTool) {
		t.HTTP = &toolset.Request{}
		if given := request.ParseObject(c, at, raw, t.HTTP, requestFields); !given["later"] {
			t.HTTP.Later = !strings.EqualFold(t.HTTP.Method, http.MethodGet)
		}
	}},
}

// rejectOtherKind reports members that only entries of the other kind have.
func (c *call) rejectOtherKind(kind toolset.Kind) {
	wrong := []string{"tools", "openapi", "operations"}
	if kind == toolset.HTTP {
		wrong = []string{"allow", "auth", "auth_per", "client_id", "client_secret_name", "scopes"}
	}
	for _, name := range wrong {
		if c.body.Has(name) {
			c.Add(fault.Violation{Param: "/" + name, Rule: "unknown", Message: fmt.Sprintf("An entry of the kind %s has no %s.", kind, name)})
		}
	}
}

// readHTTPAPI reads a new HTTP API with its tools. Its address can come from the OpenAPI document.
func (c *call) readHTTPAPI(e toolset.Entry) error {
	e.URL = c.body.String("url", 2048)
	tools, doc, err := c.httpTools(e.Headers)
	if err != nil {
		return err
	}
	if e.URL == "" && doc != nil {
		e.URL = doc.Server()
	}
	if e.URL == "" {
		c.body.Missing("url")
	}
	c.offered = &offered{entry: e, http: tools}
	return c.Err()
}

// putHTTPTools replaces the tools of an HTTP API.
func (s *api) putHTTPTools(ctx context.Context, c *call) (any, error) {
	ws, name := c.Caller.Workspace.ID, c.PathValue("toolServer")
	held, err := s.Toolset.Find(ctx, ws, name)
	if err != nil {
		return nil, err
	}
	tools, _, err := c.httpTools(held.Headers)
	if err == nil {
		err = c.Err()
	}
	if err != nil {
		return nil, err
	}
	server, err := s.Toolset.ReplaceHTTP(ctx, ws, name, tools)
	return viewToolServer(server, nil), c.httpError(err)
}

// httpTools parses the tools of an HTTP API: tools, or openapi with operations.
func (c *call) httpTools(headers map[string]string) (tools []toolset.HTTPTool, doc *openapi.Document, err error) {
	if c.body.Has("tools") == c.body.Has("openapi") {
		c.Add(fault.Violation{Param: "/tools", Rule: "exactly_one", Message: "An HTTP API needs tools, or openapi with operations."})
		return nil, nil, nil
	}
	if c.body.Has("tools") {
		for i, raw := range c.body.List("tools", toolset.MaxTools) {
			at, t := fmt.Sprintf("/tools/%d", i), toolset.HTTPTool{}
			request.ParseObject(c.Checks, at, raw, &t, httpToolFields)
			tools = append(tools, t)
		}
		return tools, nil, nil
	}
	text := c.body.RequiredText("openapi")
	ids := c.body.Strings("operations", toolset.MaxTools)
	if err := c.Err(); err != nil {
		return nil, nil, err
	}
	doc, err = openapi.Parse([]byte(text))
	if refused, ok := errors.AsType[openapi.Refusal](err); ok {
		return nil, nil, fault.Invalid(fault.Violation{Param: "/openapi", Rule: "format", Message: string(refused)})
	}
	if err != nil {
		return nil, nil, err
	}
	if len(ids) == 0 {
		known := doc.Operations()
		c.Add(fault.Violation{Param: "/operations", Rule: "required",
			Message: "Choose operations of the document by their operationId: " + strings.Join(known[:min(len(known), 20)], ", ") + "."})
	}
	for i, id := range ids {
		t, err := doc.Tool(id, headers)
		if refused, ok := errors.AsType[openapi.Refusal](err); ok {
			c.Add(fault.Violation{Param: fmt.Sprintf("/operations/%d", i), Rule: "format", Message: fmt.Sprintf("%.100s: %s", id, refused)})
		} else if err != nil {
			return nil, nil, err
		}
		tools = append(tools, t)
	}
	return tools, doc, nil
}

// httpError names the operation that a violation is about, if the tools come from operations.
func (c *call) httpError(err error) error {
	f := fault.From(err)
	if f == nil || !c.body.Has("openapi") {
		return err
	}
	for i, v := range f.Detail.Violations {
		if rest, ok := strings.CutPrefix(v.Param, "/tools/"); ok {
			at, _, _ := strings.Cut(rest, "/")
			f.Detail.Violations[i].Param, f.Detail.Violations[i].Message = "/operations/"+at, v.Message+" ("+v.Param+")"
		}
	}
	return err
}

// ReplaceHTTPTools replaces the tools of an HTTP API by those of a list of the API.
func (s Stores) ReplaceHTTPTools(ctx context.Context, workspace uuid.UUID, name string, list json.RawMessage) (toolset.Server, error) {
	c := newCall(nil)
	c.body.Members = []request.Member{{Name: "tools", Value: list}}
	tools, _, err := c.httpTools(nil)
	if err == nil {
		err = c.Err()
	}
	if err != nil {
		return toolset.Server{}, err
	}
	return s.Toolset.ReplaceHTTP(ctx, workspace, name, tools)
}

// AddHTTPAPI adds an HTTP API. The definition has the members of a request body: url, and tools or
// openapi with operations.
func (s Stores) AddHTTPAPI(ctx context.Context, workspace uuid.UUID, e toolset.Entry, definition []request.Member) (toolset.Server, error) {
	c := newCall(nil)
	c.body.Members = definition
	e.Kind = toolset.HTTP
	if err := c.readHTTPAPI(e); err != nil {
		return toolset.Server{}, err
	}
	server, err := s.Toolset.AddHTTP(ctx, workspace, c.offered.entry, c.offered.http)
	return server, c.httpError(err)
}
