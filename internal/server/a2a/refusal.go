package a2a

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/server"
	"github.com/parley-server/parley/internal/server/request"
	"github.com/parley-server/parley/internal/sse"
)

// refusal is the answer to a call that fails.
type refusal struct {
	JSONRPC string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Error   wireError       `json:"error"`
}

type wireError struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
	Data    any    `json:"data,omitempty"`
}

// refuse answers with an error.
func (c *call) refuse(err error) error {
	e := c.rpcErrorOf(err)
	if e.fault != nil {
		if wait := server.Tell(e.fault).RetryAfter; wait > 0 {
			c.w.Header().Set("Retry-After", strconv.Itoa(wait))
		}
	}
	if accept := strings.Join(c.r.Header.Values("Accept"), ","); c.version == v03 && c.streams && strings.Contains(accept, request.StreamType) && !strings.Contains(accept, request.JSONType) {
		return c.refuseInStream(e)
	}
	return server.WriteJSON(c.w, http.StatusOK, c.refusal(e))
}

// refuseInStream answers who asks for a stream and for no JSON. In version 0.3 the answer of such a
// method always is one, and its clients read nothing else; those of 1.0 read both.
func (c *call) refuseInStream(e *rpcError) error {
	data, err := server.Encode(c.refusal(e))
	if err != nil {
		return err
	}
	sw := sse.Open(c.w, sse.Options{Keepalive: c.Keepalive, WriteTimeout: c.WriteTimeout})
	defer sw.Close()
	if sw.Message(0, data[:len(data)-1]) == nil {
		_ = sw.Flush() // who has hung up needs no answer
	}
	return nil
}

func (c *call) refusal(e *rpcError) refusal {
	out := wireError{Code: e.Code, Message: e.Message}
	if c.version == v03 {
		out.Data = e.plain()
	} else if list := e.details(); len(list) > 0 {
		out.Data = list
	}
	return refusal{"2.0", c.id, out}
}

// plain are the details of an error as version 0.3 has them: anything.
func (e *rpcError) plain() any {
	switch {
	case e.fault != nil:
		return e.failure()
	case len(e.about) > 0:
		return e.about
	}
	return nil
}

// The types of details, as Protocol Buffers name them.
const (
	typeURL    = "type.googleapis.com/"
	errorInfo  = typeURL + "google.rpc.ErrorInfo"
	badRequest = typeURL + "google.rpc.BadRequest"
	retryInfo  = typeURL + "google.rpc.RetryInfo"
	structType = typeURL + "google.protobuf.Struct"
)

// details are the details of an error as version 1.0 has them: a list of typed objects.
func (e *rpcError) details() (list []map[string]any) {
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
	told := server.Tell(e.fault)
	info(string(told.Code), "parley")
	vs := told.Violations
	if len(vs) == 0 && told.Param != "" && e.Code == invalidParams {
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

// failure is a fault as the details of an error show it, with what it is about.
func (e *rpcError) failure() map[string]any {
	told := make(map[string]any)
	raw, err := json.Marshal(server.Tell(e.fault))
	if err == nil {
		err = json.Unmarshal(raw, &told)
	}
	if err != nil { // of such a shape it cannot happen
		told["code"] = e.fault.Code
	}
	for name, value := range e.about {
		told[name] = value
	}
	return told
}
