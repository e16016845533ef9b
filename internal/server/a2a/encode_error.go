package a2a

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/server"
	"github.com/parley-server/parley/internal/server/jsonrpc"
	"github.com/parley-server/parley/internal/server/request"
)

// writeError responds with an error.
func (c *call) writeError(err error) error {
	e := c.rpcErrorOf(err)
	if e.fault != nil {
		if wait := server.FailureOf(e.fault).RetryAfter; wait > 0 {
			c.w.Header().Set("Retry-After", strconv.Itoa(wait))
		}
	}
	accept := strings.Join(c.r.Header.Values("Accept"), ",")
	if c.version == v03 && c.streams && strings.Contains(accept, request.StreamType) && !strings.Contains(accept, request.JSONType) {
		return c.WriteFrames(c.w, []any{c.failure(e)}) // such a client of 0.3 parses only a stream
	}
	return server.WriteJSON(c.w, http.StatusOK, c.failure(e))
}

// failure returns the response with an error, in the form of the caller's version.
func (c *call) failure(e *rpcError) any {
	out := &jsonrpc.Error{Code: e.Code, Message: e.Message}
	if c.version == v03 {
		out.Data = e.detailsV03()
	} else if list := e.detailsV10(); len(list) > 0 {
		out.Data = list
	}
	return jsonrpc.Failure(c.id, out)
}

// detailsV03 returns the details of an error in version 0.3, which may be any JSON.
func (e *rpcError) detailsV03() any {
	switch {
	case e.fault != nil:
		return e.failure()
	case len(e.about) > 0:
		return e.about
	}
	return nil
}

// The types of details, with their Protocol Buffers names.
const (
	typeURL    = "type.googleapis.com/"
	errorInfo  = typeURL + "google.rpc.ErrorInfo"
	badRequest = typeURL + "google.rpc.BadRequest"
	retryInfo  = typeURL + "google.rpc.RetryInfo"
	structType = typeURL + "google.protobuf.Struct"
)

// detailsV10 returns the details of an error in version 1.0: a list of typed objects.
func (e *rpcError) detailsV10() (list []map[string]any) {
	info := func(reason, domain string) {
		detail := map[string]any{"@type": errorInfo, "reason": reason, "domain": domain}
		if len(e.about) > 0 {
			detail["metadata"] = e.about
		}
		list = append(list, detail)
	}
	if reason, ok := reasons[e.Code]; ok {
		info(reason, "a2a-protocol.org")
	} else if code := e.about["code"]; code != "" {
		info(code, "parley")
	}
	if e.fault == nil {
		return list
	}
	told := server.FailureOf(e.fault)
	info(string(told.Code), "parley")
	vs := told.Violations
	if len(vs) == 0 && told.Param != "" && e.Code == jsonrpc.InvalidParams {
		vs = []fault.Violation{{Param: told.Param, Message: told.Message}}
	}
	if len(vs) > 0 {
		fields := make([]map[string]string, len(vs))
		for i, v := range vs {
			fields[i] = map[string]string{"field": strings.ReplaceAll(strings.TrimPrefix(v.Param, "/"), "/", "."), "description": v.Message}
		}
		list = append(list, map[string]any{"@type": badRequest, "fieldViolations": fields})
	}
	if told.RetryAfter > 0 {
		list = append(list, map[string]any{"@type": retryInfo, "retryDelay": fmt.Sprintf("%ds", told.RetryAfter)})
	}
	return append(list, map[string]any{"@type": structType, "value": e.failure()})
}

// failure returns a fault as the details of an error, with the ids that it concerns.
func (e *rpcError) failure() map[string]any {
	told := make(map[string]any)
	raw, err := json.Marshal(server.FailureOf(e.fault))
	if err == nil {
		err = json.Unmarshal(raw, &told)
	}
	if err != nil { // cannot happen for this shape
		told["code"] = e.fault.Code
	}
	for name, value := range e.about {
		told[name] = value
	}
	return told
}
