package rest

import (
	"fmt"
	"net/http"
	"time"

	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/server/request"
	"github.com/parley-server/parley/internal/server/rest/call"
	"github.com/parley-server/parley/internal/sse"
)

const (
	probeFrames = 5
	probePause  = 200 * time.Millisecond
	probesMax   = 16 // at once, since they need no key
)

// streamProbe writes frames at a fixed pace. A client that receives them together is behind a proxy
// that buffers streams.
func (s *api) streamProbe(w http.ResponseWriter, r *call.Request) error {
	if err := request.Accepts(r.Request, "text/event-stream"); err != nil {
		return err
	}
	select {
	case s.probes <- struct{}{}:
		defer func() { <-s.probes }()
	default:
		return fault.New(fault.Unavailable, "The server runs %d probes already.", probesMax)
	}
	out := sse.Open(w, sse.Options{WriteTimeout: s.Config.WriteTimeout})
	defer out.Close()
	tick := time.NewTicker(probePause)
	defer tick.Stop()
	for n := 1; ; n++ {
		err := out.Event("probe", int64(n), fmt.Appendf(nil, `{"n":%d,"of":%d,"pause_ms":%d}`, n, probeFrames, probePause.Milliseconds()))
		if err == nil {
			err = out.Flush()
		}
		if err != nil || n == probeFrames {
			return nil // a client that has left gets no error
		}
		select {
		case <-r.Context().Done():
			return nil
		case <-tick.C:
		}
	}
}
