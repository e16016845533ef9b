package mcpserver

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/parley-server/parley/internal/apikey"
	"github.com/parley-server/parley/internal/door"
	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/limit"
	"github.com/parley-server/parley/internal/wire"
)

// visit is one HTTP request that has come in.
type visit struct {
	caller door.Caller
	base   string          // public address of the service
	ctx    context.Context // ends when the caller leaves, or the service stops
	reply  *reply
	calls  atomic.Int32 // of tools: a batch may have several
}

type visitKey struct{}

// parting is how long a request may live on when its caller has left or the service stops:
// long enough for a call to tell so.
const parting = 2 * time.Second

// serve lets a request in and hands it to the protocol.
func (s *server) serve(w http.ResponseWriter, r *http.Request) error {
	const allow = "OPTIONS, POST"
	switch r.Method {
	case http.MethodPost:
	case http.MethodOptions:
		w.Header().Set("Allow", allow)
		w.WriteHeader(http.StatusNoContent)
		return nil
	default: // a GET would open a stream of a session, and a DELETE end one: there are none
		w.Header().Set("Allow", allow)
		return fault.New(fault.MethodNotAllowed, "This path allows %s.", allow)
	}
	if err := s.local(r); err != nil {
		return err
	}
	caller, err := s.door.Admit(w, r, door.Terms{Scope: apikey.MCPRead, Class: limit.Calls})
	if err != nil {
		return err
	}
	if err := accepts(r); err != nil {
		return err
	}
	body, err := wire.ReadJSON(w, r)
	if err != nil {
		return err
	}
	there, leave := context.WithCancel(r.Context())
	defer leave()
	out := newReply(w, s.cfg.WriteTimeout, s.cfg.Keepalive, leave)
	only, bad := look(body)
	switch {
	case bad != nil:
		return out.refuse(http.StatusBadRequest, only.ID, *bad)
	case only.Method != "" && only.ID == nil: // a notification: there is nothing here that could change by it
		w.WriteHeader(http.StatusAccepted)
		return nil
	case only.Method != "" && !slices.Contains(served, only.Method):
		status := http.StatusOK
		if r.Header.Get("Mcp-Protocol-Version") >= "2026-07-28" {
			status = http.StatusNotFound
		}
		return out.refuse(status, only.ID, jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "There is no method " + wire.Short(only.Method) + " here."})
	}
	s.speak(out, r.WithContext(there), caller, body)
	return out.finish(only.ID)
}

// speak hands a request to the protocol. The protocol outlives the request by a moment, so
// that a call which has to end can tell.
func (s *server) speak(out *reply, r *http.Request, caller door.Caller, body []byte) {
	v := &visit{caller: caller, base: s.door.Base(r), ctx: r.Context(), reply: out}
	ctx, cancel := context.WithCancel(context.WithValue(context.WithoutCancel(v.ctx), visitKey{}, v))
	defer cancel()
	defer context.AfterFunc(v.ctx, func() {
		timer := time.AfterFunc(parting, cancel)
		context.AfterFunc(ctx, func() { timer.Stop() })
	})()
	r = r.WithContext(ctx)
	r.Body = io.NopCloser(bytes.NewReader(body))
	s.protocol.ServeHTTP(out, r)
}

// accepts checks that the caller takes both of the types that an answer may have.
func accepts(r *http.Request) error {
	if len(r.Header.Values("Accept")) == 0 {
		r.Header.Set("Accept", "*/*")
	}
	for _, t := range []string{wire.JSONType, wire.StreamType} {
		if wire.Accepts(r, t) != nil {
			return fault.New(fault.NotAcceptable, "The Accept header must allow both %s and %s.", wire.JSONType, wire.StreamType)
		}
	}
	r.Header.Set("Accept", wire.JSONType+", "+wire.StreamType)
	return nil
}

// message is what has to be known of a JSON-RPC message before the protocol reads it.
type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
}

// batch is how many messages may come at once, in the revisions that know that.
const batch = 20

// served are the methods that there are. The SDK would answer more: with empty lists, and
// with a listener that holds a connection for news which never come.
var served = []string{"initialize", "ping", "server/discover", "tools/list", "tools/call"}

// look reads as much of a body as it takes to answer to its id whatever becomes of it: only is
// its message, where it is no batch.
func look(body []byte) (only message, bad *jsonrpc.Error) {
	if !json.Valid(body) || !utf8.Valid(body) {
		return only, &jsonrpc.Error{Code: jsonrpc.CodeParseError, Message: "The body is not JSON in UTF-8."}
	}
	var list []json.RawMessage
	batched := json.Unmarshal(body, &list) == nil
	if !batched {
		list = []json.RawMessage{body}
	} else if len(list) == 0 || len(list) > batch {
		return only, &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: "A batch has 1 to 20 messages. Send each in a request of its own."}
	}
	for _, text := range list {
		var m message
		if json.Unmarshal(text, &m) != nil {
			return only, &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: "A message is an object with jsonrpc, method and, if it wants an answer, id."}
		}
		if !batched {
			only = m
		}
		if _, err := jsonrpc.DecodeMessage(text); err != nil {
			return only, &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: "This is no JSON-RPC 2.0 message: " + err.Error() + "."}
		}
	}
	return only, nil
}

// server is the protocol's view of a key: the tools of its scopes. Keys of the same rights
// share one.
func (s *server) server(r *http.Request) *mcp.Server {
	v := r.Context().Value(visitKey{}).(*visit)
	var names []string
	for _, t := range s.tools {
		if v.caller.Scopes.Allows(t.scope) {
			names = append(names, t.spec.Name)
		}
	}
	key := strings.Join(names, " ")
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.servers[key] == nil {
		s.servers[key] = s.offer(names)
	}
	return s.servers[key]
}

const instructions = `Parley holds conversations with the agent of one workspace. send_message asks it and waits for the answer; keep session_id to go on. ` +
	`Where error is "input_required", ask the person you work for: approvals are answered with decide_approval, secrets only at secret_url. ` +
	`A refused call says why in fault.`

// offer makes a server with some of the tools.
func (s *server) offer(names []string) *mcp.Server {
	srv := mcp.NewServer(&mcp.Implementation{Name: "parley", Title: "Parley", Version: s.cfg.Version}, &mcp.ServerOptions{
		Instructions: instructions,
		Capabilities: &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{}},
		// A list of tools is for the keys of one set of scopes, and no cache knows those.
		SetCacheable: func(_ context.Context, _ mcp.Request, c *mcp.Cacheable) { c.CacheScope, c.TTLMs = "private", 0 },
	})
	for i := range s.tools {
		t := &s.tools[i]
		if slices.Contains(names, t.spec.Name) {
			srv.AddTool(t.spec, func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				return s.call(ctx, t, req)
			})
		}
	}
	srv.AddReceivingMiddleware(s.forbid)
	return srv
}
