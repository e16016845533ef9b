package rpc

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/server"
	"github.com/parley-server/parley/internal/server/jsonrpc"
)

// DetailsV03 returns the details of an error in version 0.3, which may be any JSON.
func (e *Error) DetailsV03() any {
	switch {
	case e.Fault != nil:
		return e.failure()
	case len(e.About) > 0:
		return e.About
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

// DetailsV10 returns the details of an error in version 1.0: a list of typed objects.
func (e *Error) DetailsV10() (list []map[string]any) {
	info := func(reason, domain string) {
		detail := map[string]any{"@type": errorInfo, "reason": reason, "domain": domain}
		if len(e.About) > 0 {
			detail["metadata"] = e.About
		}
		list = append(list, detail)
	}
	if reason, ok := reasons[e.Code]; ok {
		info(reason, "a2a-protocol.org")
	} else if code := e.About["code"]; code != "" {
		info(code, "parley")
	}
	if e.Fault == nil {
		return list
	}
	told := server.FailureOf(e.Fault)
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
func (e *Error) failure() map[string]any {
	told := make(map[string]any)
	raw, err := json.Marshal(server.FailureOf(e.Fault))
	if err == nil {
		err = json.Unmarshal(raw, &told)
	}
	if err != nil { // cannot happen for this shape
		told["code"] = e.Fault.Code
	}
	for name, value := range e.About {
		told[name] = value
	}
	return told
}
