// Package transport connects the SDK's servers to streamable HTTP without sessions, one request at
// a time. It exists for what the SDK's own handler does wrong: that changes ids beyond 2^53 and
// drops the batches of 2025-03-26. docs/internals/design.md has the details.
//
// It promises: a response repeats its id byte for byte; a request that the revision does not have
// is rejected before the SDK reads it; a call outlives its client long enough to report that.
package transport

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/server"
	"github.com/parley-server/parley/internal/server/jsonrpc"
	"github.com/parley-server/parley/internal/server/request"
)

// Visit is one received message.
type Visit struct {
	Caller   server.Caller
	Base     string          // public address of the service
	Context  context.Context // ends when the caller leaves, or the service stops
	reply    *reply
	revision string
	message  *message
}

type visitKey struct{}

// VisitOf returns the message for which the SDK calls a tool.
func VisitOf(ctx context.Context) *Visit { return ctx.Value(visitKey{}).(*Visit) }

// KeepAlive begins a stream with a comment if the response takes long, until stop is called.
func (v *Visit) KeepAlive() (stop func()) { return v.reply.keepAlive() }

// ProgressToken identifies notifications of progress; nil: not requested.
func (v *Visit) ProgressToken() json.RawMessage { return v.message.token }

// Answers returns the answers to questions, by their names, with the state that came with the
// questions; "" if the message answers none.
func (v *Visit) Answers() (state string, answers []request.Member) {
	return v.message.state, v.message.answers
}

// Handler handles the requests of the protocol.
type Handler struct {
	*server.Server
	tools     []string
	serverFor func(server.Caller) *mcp.Server
}

// New returns a handler for the tools of the given names, with the SDK's server for each caller.
func New(srv *server.Server, tools []string, serverFor func(server.Caller) *mcp.Server) *Handler {
	return &Handler{srv, tools, serverFor}
}

// Serve parses a request and responds to its messages.
func (s *Handler) Serve(w http.ResponseWriter, r *server.Request) error {
	if err := checkAccept(r.Request); err != nil {
		return err
	}
	body, err := request.ReadJSON(w, r.Request)
	if err != nil {
		return err
	}
	there, leave := context.WithCancel(r.Context())
	defer leave()
	out := newReply(w, s.Server, leave)
	defer out.stopKeepAlive()
	parsed, batched, bad := jsonrpc.Parse(body)
	if bad != nil {
		return out.writeResponse(http.StatusBadRequest, jsonrpc.Failure(nil, bad))
	}
	list := make([]message, len(parsed))
	for i := range parsed {
		list[i].Message = parsed[i]
	}
	v := Visit{Caller: r.Caller, Base: s.Base(r.Request), Context: there, reply: out}
	if v.revision, bad = revisionOf(r.Header); bad != nil {
		v.message = &message{}
		if !batched {
			v.message = &list[0]
		}
		return v.writeResponse(nil, bad)
	}
	for i := range list {
		list[i].Err = s.checkMessage(&list[i], v.revision, r.Header)
	}
	if batched {
		return s.serveBatch(w, v, list)
	}
	v.message = &list[0]
	return s.serveSingle(w, v)
}

// serveSingle responds to a message outside of a batch.
func (s *Handler) serveSingle(w http.ResponseWriter, v Visit) error {
	switch {
	case v.message.Err != nil:
		return v.writeResponse(nil, v.message.Err)
	case v.message.ID == nil:
		w.WriteHeader(http.StatusAccepted)
		return nil
	}
	ctx, cancel := v.outlivingContext()
	defer cancel()
	return v.writeResponse(s.callSDK(ctx, &v))
}

// parting is how long a request may continue after its caller has left or the service stops, so
// that a call can report it.
const parting = 2 * time.Second

// outlivingContext returns the context of the SDK's work. It outlives the request by parting.
func (v *Visit) outlivingContext() (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(v.Context))
	stop := context.AfterFunc(v.Context, func() {
		timer := time.AfterFunc(parting, cancel)
		context.AfterFunc(ctx, func() { timer.Stop() })
	})
	return ctx, func() {
		stop()
		cancel()
	}
}

// writeResponse sends the response to the message of a visit.
func (v *Visit) writeResponse(result json.RawMessage, bad *jsonrpc.Error) error {
	if result == nil && bad == nil { // no response in time: the caller has left, or the service is stopping
		return v.Context.Err()
	}
	response := jsonrpc.Result(v.message.ID, result)
	if bad != nil {
		response = jsonrpc.Failure(v.message.ID, bad)
	}
	return v.reply.writeResponse(v.httpStatus(bad), response)
}

// httpStatus returns the HTTP status of a response. Clients of revisions with a handshake read only
// the body of a 200, so errors of their requests have that status.
func (v *Visit) httpStatus(bad *jsonrpc.Error) int {
	handshake := v.revision < RoundTrips && v.message.ID != nil
	switch {
	case bad == nil:
		return http.StatusOK
	case bad.Code == jsonrpc.InternalError:
		return http.StatusInternalServerError
	case handshake && (bad.Code == jsonrpc.MethodNotFound || bad.Code == jsonrpc.InvalidParams):
		return http.StatusOK
	case bad.Code == jsonrpc.MethodNotFound:
		return http.StatusNotFound
	}
	return http.StatusBadRequest
}

// checkAccept checks that the caller accepts both media types of a response.
func checkAccept(r *http.Request) error {
	for _, t := range []string{request.JSONType, request.StreamType} {
		if request.Accepts(r, t) != nil {
			return fault.New(fault.NotAcceptable, "The Accept header must allow both %s and %s.", request.JSONType, request.StreamType)
		}
	}
	return nil
}
