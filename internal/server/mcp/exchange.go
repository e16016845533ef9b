package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/parley-server/parley/internal/server/request"
)

// exchange is a connection of the protocol for one request and its response. Messages before the
// response are passed to the client unchanged.
type exchange struct {
	request chan *jsonrpc.Request
	answer  chan *jsonrpc.Response
	out     *reply

	closing sync.Once
	closed  chan struct{}
}

// Connect implements mcp.Transport.
func (x *exchange) Connect(context.Context) (mcp.Connection, error) { return x, nil }

// SessionID implements mcp.Connection: there are no sessions.
func (x *exchange) SessionID() string { return "" }

// Read implements mcp.Connection.
func (x *exchange) Read(ctx context.Context) (jsonrpc.Message, error) {
	select {
	case r := <-x.request:
		return r, nil
	case <-x.closed:
		return nil, io.EOF
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Write implements mcp.Connection.
func (x *exchange) Write(_ context.Context, m jsonrpc.Message) error {
	if r, ok := m.(*jsonrpc.Response); ok {
		x.answer <- r // the only one
		return nil
	}
	text, err := jsonrpc.EncodeMessage(m)
	if err != nil {
		return err
	}
	return x.out.event(text)
}

// Close implements mcp.Connection.
func (x *exchange) Close() error {
	x.closing.Do(func() { close(x.closed) })
	return nil
}

// first is the id of the only request of an exchange.
var first, _ = jsonrpc.MakeID("1") // of a string it cannot fail

// ask has the SDK answer a request. It returns no response if ctx ends first.
func (s *api) ask(ctx context.Context, v *visit) (json.RawMessage, *jsonrpc.Error) {
	x := &exchange{request: make(chan *jsonrpc.Request, 1), answer: make(chan *jsonrpc.Response, 1), closed: make(chan struct{}), out: v.reply}
	state := new(mcp.ServerSessionState)
	if v.revision < roundTrips && v.message.method != "initialize" { // as if there had been a handshake
		state.InitializeParams, state.InitializedParams = &mcp.InitializeParams{ProtocolVersion: v.revision}, new(mcp.InitializedParams)
	}
	session, err := s.sdk(v.caller).Connect(context.WithValue(ctx, visitKey{}, v), x, &mcp.ServerSessionOptions{State: state})
	if err != nil {
		return nil, s.failed(ctx, v, err)
	}
	defer session.Close()
	x.request <- &jsonrpc.Request{ID: first, Method: v.message.method, Params: v.message.body()}
	select {
	case <-ctx.Done():
		return nil, nil
	case r := <-x.answer:
		if told, ok := errors.AsType[*jsonrpc.Error](r.Error); ok {
			return nil, told
		}
		if r.Error != nil {
			return nil, s.failed(ctx, v, r.Error)
		}
		return whole(r.Result), nil
	}
}

// whole is a result without a content that is none: a question has no content, and the SDK
// writes null.
func whole(result json.RawMessage) json.RawMessage {
	if !bytes.Contains(result, []byte(`"content":null`)) {
		return result
	}
	var out []byte
	for _, m := range request.Members(result) {
		if m.Name != "content" || string(m.Value) != "null" {
			out = fmt.Appendf(out, ",%q:%s", m.Name, m.Value)
		}
	}
	return append(append([]byte("{"), bytes.TrimPrefix(out, []byte(","))...), '}')
}

// failed logs and returns the error for an exchange that the SDK should not have failed.
func (s *api) failed(ctx context.Context, v *visit, err error) *jsonrpc.Error {
	f := s.Fault(ctx, fmt.Errorf("answer a request of the protocol: %w", err), "method", v.message.method, "workspace", v.caller.Workspace.ID, "key", v.caller.Key)
	return wrong(jsonrpc.CodeInternalError, "%s", f.Message)
}
