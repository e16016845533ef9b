package transport

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"

	sdk "github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/parley-server/parley/internal/server/jsonrpc"
	"github.com/parley-server/parley/internal/server/request"
)

// exchange is a connection of the protocol for one request and its response. Messages before the
// response are passed to the client unchanged.
type exchange struct {
	request chan *sdk.Request
	answer  chan *sdk.Response
	out     *reply

	closing sync.Once
	closed  chan struct{}
}

// Connect implements mcp.Transport.
func (x *exchange) Connect(context.Context) (mcp.Connection, error) { return x, nil }

// SessionID implements mcp.Connection: this server has no sessions.
func (x *exchange) SessionID() string { return "" }

// Read implements mcp.Connection.
func (x *exchange) Read(ctx context.Context) (sdk.Message, error) {
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
func (x *exchange) Write(_ context.Context, m sdk.Message) error {
	if r, ok := m.(*sdk.Response); ok {
		x.answer <- r // the only one
		return nil
	}
	text, err := sdk.EncodeMessage(m)
	if err != nil {
		return err
	}
	return x.out.writeEvent(text)
}

// Close implements mcp.Connection.
func (x *exchange) Close() error {
	x.closing.Do(func() { close(x.closed) })
	return nil
}

// first is the id of the only request of an exchange.
var first, _ = sdk.MakeID("1") // a string cannot fail

// callSDK lets the SDK handle a request. It returns no response if ctx ends first.
func (s *Handler) callSDK(ctx context.Context, v *Visit) (json.RawMessage, *jsonrpc.Error) {
	x := &exchange{request: make(chan *sdk.Request, 1), answer: make(chan *sdk.Response, 1), closed: make(chan struct{}), out: v.reply}
	state := new(mcp.ServerSessionState)
	if v.revision < RoundTrips && v.message.Method != "initialize" { // as after a handshake
		state.InitializeParams, state.InitializedParams = &mcp.InitializeParams{ProtocolVersion: v.revision}, new(mcp.InitializedParams)
	}
	session, err := s.serverFor(v.Caller).Connect(context.WithValue(ctx, visitKey{}, v), x, &mcp.ServerSessionOptions{State: state})
	if err != nil {
		return nil, s.internalError(ctx, v, err)
	}
	defer session.Close()
	x.request <- &sdk.Request{ID: first, Method: v.message.Method, Params: v.message.bodyForSDK()}
	select {
	case <-ctx.Done():
		return nil, nil
	case r := <-x.answer:
		if e, ok := errors.AsType[*sdk.Error](r.Error); ok {
			return nil, &jsonrpc.Error{Code: int(e.Code), Message: e.Message, Data: dataOf(e)}
		}
		if r.Error != nil {
			return nil, s.internalError(ctx, v, r.Error)
		}
		return withoutNullContent(r.Result), nil
	}
}

// dataOf returns the data of an error, or nil.
func dataOf(e *sdk.Error) any {
	if e.Data == nil {
		return nil
	}
	return e.Data
}

// withoutNullContent removes a null content: a question has no content, and the SDK encodes null.
func withoutNullContent(result json.RawMessage) json.RawMessage {
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

// internalError logs and returns the error for an exchange that the SDK should not have failed.
func (s *Handler) internalError(ctx context.Context, v *Visit, err error) *jsonrpc.Error {
	f := s.Fault(ctx, fmt.Errorf("answer a request of the protocol: %w", err), "method", v.message.Method, "workspace",
		v.Caller.Workspace.ID, "key", v.Caller.Key)
	return jsonrpc.Errorf(jsonrpc.InternalError, "%s", f.Message)
}
