package transport

import (
	"encoding/json"
	"net/http"
	"slices"
	"sync"

	"github.com/parley-server/parley/internal/server/jsonrpc"
	"github.com/parley-server/parley/internal/store/ratelimit"
)

// maxBatch is the maximum number of messages in a batch.
const maxBatch = 20

// serveBatch responds to the messages of a list, each for itself, in a stream. It counts all of
// them before it handles any; the first was counted when the request arrived.
func (s *Handler) serveBatch(w http.ResponseWriter, v Visit, list []message) error {
	v.message = &message{}
	switch again := repeatedID(list); {
	case v.revision != batches:
		return v.writeResponse(nil, jsonrpc.Errorf(jsonrpc.InvalidRequest,
			"The revision %s knows no batches. Send each message in a request of its own.", v.revision))
	case len(list) == 0 || len(list) > maxBatch:
		return v.writeResponse(nil, jsonrpc.Errorf(jsonrpc.InvalidRequest, "A batch has 1 to %d messages, and this one has %d.", maxBatch,
			len(list)))
	case again != nil:
		return v.writeResponse(nil, jsonrpc.Errorf(jsonrpc.InvalidRequest, "The id %s is there twice. Nothing of this batch was done.", again))
	}
	for range len(list) - 1 {
		if _, err := s.Count(v.Context, v.Caller, ratelimit.Calls); err != nil {
			w.Header().Del("RateLimit") // that of the first message
			return err
		}
	}
	if !slices.ContainsFunc(list, func(m message) bool { return m.ID != nil || m.Err != nil }) {
		w.WriteHeader(http.StatusAccepted)
		return nil
	}
	ctx, cancel := v.outlivingContext()
	defer cancel()
	v.reply.beginStream()
	var all sync.WaitGroup
	for i := range list {
		one := v
		one.message = &list[i]
		switch {
		case one.message.Err == nil && one.message.Method == "initialize":
			one.message.Err = jsonrpc.Errorf(jsonrpc.InvalidRequest, "initialize must not be part of a batch.")
			fallthrough
		case one.message.Err != nil:
			_ = one.writeResponse(nil, one.message.Err)
		case one.message.ID != nil:
			all.Go(func() { _ = one.writeResponse(s.callSDK(ctx, &one)) })
		}
	}
	all.Wait()
	return nil
}

// repeatedID returns an id that two of the messages have, nil if there is none.
func repeatedID(list []message) json.RawMessage {
	seen := make(map[any]bool)
	for _, m := range list {
		if m.ID == nil {
			continue
		}
		var key any = json.Number(m.ID)
		if m.ID[0] == '"' {
			var text string
			_ = json.Unmarshal(m.ID, &text)
			key = text
		}
		if seen[key] {
			return m.ID
		}
		seen[key] = true
	}
	return nil
}
