package mcp

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/server"
	"github.com/parley-server/parley/internal/server/jsonrpc"
	"github.com/parley-server/parley/internal/server/request"
)

// visit is one received message.
type visit struct {
	caller   server.Caller
	base     string          // public address of the service
	ctx      context.Context // ends when the caller leaves, or the service stops
	reply    *reply
	revision string
	message  *message
}

type visitKey struct{}

// serve parses a request and responds to its messages.
func (s *api) serve(w http.ResponseWriter, r *server.Request) error {
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
	defer out.close()
	parsed, batched, bad := jsonrpc.Parse(body)
	if bad != nil {
		return out.writeResponse(http.StatusBadRequest, jsonrpc.Failure(nil, bad))
	}
	list := make([]message, len(parsed))
	for i := range parsed {
		list[i].Message = parsed[i]
	}
	v := visit{caller: r.Caller, base: s.Base(r.Request), ctx: there, reply: out}
	if v.revision, bad = revisionOf(r.Header); bad != nil {
		v.message = &message{}
		if !batched {
			v.message = &list[0]
		}
		return v.respond(nil, bad)
	}
	for i := range list {
		list[i].Err = s.check(&list[i], v.revision, r.Header)
	}
	if batched {
		return s.batch(w, v, list)
	}
	v.message = &list[0]
	return s.single(w, v)
}

// single responds to a message outside of a batch.
func (s *api) single(w http.ResponseWriter, v visit) error {
	switch {
	case v.message.Err != nil:
		return v.respond(nil, v.message.Err)
	case v.message.ID == nil:
		w.WriteHeader(http.StatusAccepted)
		return nil
	}
	ctx, cancel := v.outlivingContext()
	defer cancel()
	return v.respond(s.callSDK(ctx, &v))
}

// parting is how long a request may continue after its caller has left or the service stops, so
// that a call can report it.
const parting = 2 * time.Second

// outlivingContext returns the context of the SDK's work. It outlives the request by parting.
func (v *visit) outlivingContext() (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(v.ctx))
	stop := context.AfterFunc(v.ctx, func() {
		timer := time.AfterFunc(parting, cancel)
		context.AfterFunc(ctx, func() { timer.Stop() })
	})
	return ctx, func() {
		stop()
		cancel()
	}
}

// respond sends the response to the message of a visit.
func (v *visit) respond(result json.RawMessage, bad *jsonrpc.Error) error {
	if result == nil && bad == nil { // no response in time: the caller has left, or the service is stopping
		return v.ctx.Err()
	}
	response := jsonrpc.Result(v.message.ID, result)
	if bad != nil {
		response = jsonrpc.Failure(v.message.ID, bad)
	}
	return v.reply.writeResponse(v.status(bad), response)
}

// status returns the HTTP status of a response. Clients of revisions with a handshake read only the
// body of a 200, so errors of their requests have that status.
func (v *visit) status(bad *jsonrpc.Error) int {
	handshake := v.revision < roundTrips && v.message.ID != nil
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
