package a2a

import (
	"net/http"

	"github.com/parley-server/parley/internal/server"
	"github.com/parley-server/parley/internal/server/a2a/call"
	"github.com/parley-server/parley/internal/server/a2a/rpc"
	"github.com/parley-server/parley/internal/server/a2a/turns"
	"github.com/parley-server/parley/internal/server/jsonrpc"
	"github.com/parley-server/parley/internal/server/request"
)

// method is a method of the protocol.
type method struct {
	do      func(*call.Call) (any, error)
	streams bool // do writes the response itself
}

// methods are the methods of each version, by name.
var methods = map[*call.Version]map[string]method{
	call.V03: {
		"message/send":                        {do: turns.Send},
		"message/stream":                      {do: turns.SendStream, streams: true},
		"tasks/get":                           {do: get},
		"tasks/cancel":                        {do: cancelTask},
		"tasks/resubscribe":                   {do: turns.Subscribe, streams: true},
		"tasks/pushNotificationConfig/set":    {do: setPush},
		"tasks/pushNotificationConfig/get":    {do: getPush},
		"tasks/pushNotificationConfig/list":   {do: listPush},
		"tasks/pushNotificationConfig/delete": {do: deletePush},
		"agent/getAuthenticatedExtendedCard":  {do: extendedCard},
	},
	call.V10: {
		"SendMessage":                      {do: turns.Send},
		"SendStreamingMessage":             {do: turns.SendStream, streams: true},
		"GetTask":                          {do: get},
		"ListTasks":                        {do: list},
		"CancelTask":                       {do: cancelTask},
		"SubscribeToTask":                  {do: turns.Subscribe, streams: true},
		"CreateTaskPushNotificationConfig": {do: setPush},
		"GetTaskPushNotificationConfig":    {do: getPush},
		"ListTaskPushNotificationConfigs":  {do: listPush},
		"DeleteTaskPushNotificationConfig": {do: deletePush},
		"GetExtendedAgentCard":             {do: extendedCard},
	},
}

// find finds the version and the method of a call. Without a version the method's name decides; the
// default is 0.3.
func find(c *call.Call) (method, error) {
	v, ok := call.VersionOf(c.R)
	if !ok {
		return method{}, &rpc.Error{Code: rpc.VersionNotSupported, Message: "This version of A2A is not spoken here: there are 0.3 and 1.0.",
			About: map[string]string{"supportedVersions": "0.3, 1.0"}}
	}
	if v == nil {
		v = call.V03
		if _, ok := methods[call.V10][c.Method]; ok {
			v = call.V10
		}
	}
	c.Version, c.Parser.Dialect = v, v.Dialect
	m, ok := methods[v][c.Method]
	if !ok {
		return m, &rpc.Error{Code: jsonrpc.MethodNotFound, Message: "Unknown method " + request.Short(c.Method) + " in A2A " + v.Name + "."}
	}
	return m, nil
}

// run parses the envelope and calls the method.
func run(c *call.Call, body []byte) error {
	if err := c.Parse(body); err != nil {
		return err
	}
	m, err := find(c)
	if err != nil {
		return err
	}
	return m.run(c)
}

// run calls a method and responds with its result.
func (m method) run(c *call.Call) error {
	c.Streams = m.streams
	if err := request.Accepts(c.R, request.JSONType, request.StreamType, plainType); err != nil {
		return err
	}
	result, err := m.do(c)
	if err != nil || m.streams {
		return err
	}
	return server.WriteJSON(c.W, http.StatusOK, c.Result(result))
}
