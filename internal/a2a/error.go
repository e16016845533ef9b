package a2a

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/apikey"
	"github.com/parley-server/parley/internal/door"
	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/session"
	"github.com/parley-server/parley/internal/sse"
	"github.com/parley-server/parley/internal/wire"
)

// The codes of errors: those of JSON-RPC, and those of the protocol.
const (
	parseError     = -32700
	invalidRequest = -32600
	methodNotFound = -32601
	invalidParams  = -32602
	internalError  = -32603
	serverError    = -32000 // what no other code stands for; the data say what it is

	taskNotFound        = -32001
	taskNotCancelable   = -32002
	unsupported         = -32004
	contentUnsupported  = -32005
	versionNotSupported = -32009
)

// reasons name the protocol's own codes in the details of errors.
var reasons = map[int]string{
	taskNotFound: "TASK_NOT_FOUND", taskNotCancelable: "TASK_NOT_CANCELABLE", unsupported: "UNSUPPORTED_OPERATION",
	contentUnsupported: "CONTENT_TYPE_NOT_SUPPORTED", versionNotSupported: "VERSION_NOT_SUPPORTED",
}

// rpcError is an error that is told as JSON-RPC.
type rpcError struct {
	Code    int
	Message string
	about   map[string]string // what it is about, by name
	fault   *fault.Error      // nil: the protocol alone knows of it
}

func (e *rpcError) Error() string { return strconv.Itoa(e.Code) + " " + e.Message }

// about names a task and its context: with them a caller can go on.
func about(task, context uuid.UUID) map[string]string {
	return map[string]string{"taskId": task.String(), "contextId": context.String()}
}

// stored is the error of a call whose message was stored: who only hears "try again" does
// not know what there is to find.
func (c *call) stored(id, context uuid.UUID, err error) error {
	e := c.told(err)
	if e.fault == nil {
		return e
	}
	e.about = about(id, context)
	if e.fault.Code == fault.Unavailable {
		e.Message = "The message was accepted and its task goes on. " + strings.TrimSuffix(e.Message, "Try again.") + "Read the task by its id, or send the same message again."
		e.fault.Message = e.Message
	}
	return e
}

// noTask is the answer for a task that does not exist, or not for this workspace.
func noTask(id string) *rpcError {
	return &rpcError{Code: taskNotFound, Message: "Task not found.", about: map[string]string{"taskId": id}}
}

// reused is the answer to an id that another message had. It is told in this protocol's words.
func reused() error {
	return fault.New(fault.IdempotencyKeyReused, "This key came with another request.")
}

// told brings an error into the shape of JSON-RPC. What the caller cannot mend is logged.
func (c *call) told(err error) *rpcError {
	if e, ok := errors.AsType[*rpcError](err); ok {
		return e
	}
	if errors.Is(err, apikey.ErrDead) {
		err = apikey.Invalid()
	}
	if errors.Is(err, session.ErrGone) {
		return &rpcError{Code: serverError, Message: "Events of this task are gone. What it came to can still be read by its id.", about: map[string]string{"code": "SESSION_GONE"}}
	}
	f := c.door.Fault(c.r.Context(), err, "method", c.method, "workspace", c.caller.Workspace.ID, "key", c.caller.Key)
	e := &rpcError{Code: serverError, fault: c.worded(f)}
	e.Message = e.fault.Message
	if t, ok := f.Detail.Turn.(*session.ActiveTurn); ok {
		e.about = about(t.TurnID, t.SessionID)
	}
	switch f.Code.Status() {
	case http.StatusBadRequest, http.StatusNotFound, http.StatusUnprocessableEntity, http.StatusRequestEntityTooLarge:
		e.Code = invalidParams
	case http.StatusUnsupportedMediaType, http.StatusNotAcceptable:
		e.Code = contentUnsupported
	case http.StatusInternalServerError:
		e.Code = internalError
	}
	return e
}

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
	e := c.told(err)
	if e.fault != nil {
		if wait := door.Tell(e.fault).RetryAfter; wait > 0 {
			c.w.Header().Set("Retry-After", strconv.Itoa(wait))
		}
	}
	if accept := strings.Join(c.r.Header.Values("Accept"), ","); c.version == v03 && c.streams && strings.Contains(accept, wire.StreamType) && !strings.Contains(accept, wire.JSONType) {
		return c.refuseInStream(e)
	}
	return door.WriteJSON(c.w, http.StatusOK, c.refusal(e))
}

// refuseInStream answers who asks for a stream and for no JSON. In version 0.3 the answer of such a
// method always is one, and its clients read nothing else; those of 1.0 read both.
func (c *call) refuseInStream(e *rpcError) error {
	data, err := door.Encode(c.refusal(e))
	if err != nil {
		return err
	}
	sw := sse.Open(c.w, sse.Options{Keepalive: c.cfg.Keepalive, WriteTimeout: c.cfg.WriteTimeout})
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
	told := door.Tell(e.fault)
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
