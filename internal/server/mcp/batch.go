package mcp

import (
	"net/http"
	"slices"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/parley-server/parley/internal/store/ratelimit"
)

// maxBatch is how many messages may come at once.
const maxBatch = 20

// batch answers the messages of a list, each for itself, in a stream. Before any of them is
// looked at, all are counted: the first was, when the request came in.
func (s *api) batch(w http.ResponseWriter, v visit, list []message) error {
	v.message = &message{}
	switch again := repeated(list); {
	case v.revision != batches:
		return v.respond(nil, wrong(jsonrpc.CodeInvalidRequest, "The revision %s knows no batches. Send each message in a request of its own.", v.revision))
	case len(list) == 0 || len(list) > maxBatch:
		return v.respond(nil, wrong(jsonrpc.CodeInvalidRequest, "A batch has 1 to %d messages, and this one has %d.", maxBatch, len(list)))
	case again != nil:
		return v.respond(nil, wrong(jsonrpc.CodeInvalidRequest, "The id %s is there twice. Nothing of this batch was done.", again))
	}
	for range len(list) - 1 {
		if _, err := s.Count(v.ctx, v.caller, ratelimit.Calls); err != nil {
			w.Header().Del("RateLimit") // it was that of the first
			return err
		}
	}
	if !slices.ContainsFunc(list, func(m message) bool { return m.id != nil || m.bad != nil }) {
		w.WriteHeader(http.StatusAccepted)
		return nil
	}
	ctx, cancel := v.outliving()
	defer cancel()
	v.reply.begin()
	var all sync.WaitGroup
	for i := range list {
		one := v
		one.message = &list[i]
		switch {
		case one.message.bad == nil && one.message.method == "initialize":
			one.message.bad = wrong(jsonrpc.CodeInvalidRequest, "initialize must not be part of a batch.")
			fallthrough
		case one.message.bad != nil:
			_ = one.respond(nil, one.message.bad)
		case one.message.id != nil:
			all.Go(func() { _ = one.respond(s.ask(ctx, &one)) })
		}
	}
	all.Wait()
	return nil
}
