package a2a

import (
	"net/http"
	"strings"

	"github.com/parley-server/parley/internal/server/a2a/message"
	"github.com/parley-server/parley/internal/server/a2a/rpc"
	"github.com/parley-server/parley/internal/server/a2a/task"
	older "github.com/parley-server/parley/internal/server/a2a/v03"
	"github.com/parley-server/parley/internal/server/jsonrpc"
	"github.com/parley-server/parley/internal/server/request"
)

// version is a version of the protocol.
type version struct {
	task.Encoding
	message.Dialect
}

// The versions.
var (
	v03 = &version{older.Encoding{}, older.Dialect}
	v10 = &version{task.V10{}, message.V10}
)

// versionOf returns the version that a request names, nil if it names none. It ignores the third
// number of a version.
func versionOf(r *http.Request) (v *version, ok bool) {
	text := strings.TrimSpace(r.Header.Get("A2A-Version"))
	if text == "" {
		text = strings.TrimSpace(r.URL.Query().Get("A2A-Version"))
	}
	parts := strings.SplitN(text, ".", 3)
	if len(parts) >= 2 {
		text = parts[0] + "." + parts[1]
	}
	switch text {
	case "":
		return nil, true
	case v03.Name:
		return v03, true
	case v10.Name:
		return v10, true
	}
	return v10, false
}

// method is a method of the protocol.
type method struct {
	do      func(*call) (any, error)
	streams bool // do writes the response itself
}

// methods are the methods of each version, by name.
var methods = map[*version]map[string]method{
	v03: {
		"message/send":                        {do: (*call).send},
		"message/stream":                      {do: (*call).sendStream, streams: true},
		"tasks/get":                           {do: (*call).get},
		"tasks/cancel":                        {do: (*call).cancel},
		"tasks/resubscribe":                   {do: (*call).subscribe, streams: true},
		"tasks/pushNotificationConfig/set":    {do: (*call).setPush},
		"tasks/pushNotificationConfig/get":    {do: (*call).getPush},
		"tasks/pushNotificationConfig/list":   {do: (*call).listPush},
		"tasks/pushNotificationConfig/delete": {do: (*call).deletePush},
		"agent/getAuthenticatedExtendedCard":  {do: (*call).extendedCard},
	},
	v10: {
		"SendMessage":                      {do: (*call).send},
		"SendStreamingMessage":             {do: (*call).sendStream, streams: true},
		"GetTask":                          {do: (*call).get},
		"ListTasks":                        {do: (*call).list},
		"CancelTask":                       {do: (*call).cancel},
		"SubscribeToTask":                  {do: (*call).subscribe, streams: true},
		"CreateTaskPushNotificationConfig": {do: (*call).setPush},
		"GetTaskPushNotificationConfig":    {do: (*call).getPush},
		"ListTaskPushNotificationConfigs":  {do: (*call).listPush},
		"DeleteTaskPushNotificationConfig": {do: (*call).deletePush},
		"GetExtendedAgentCard":             {do: (*call).extendedCard},
	},
}

// find finds the version and the method of a call. Without a version the method's name decides; the
// default is 0.3.
func (c *call) find() (method, error) {
	v, ok := versionOf(c.r)
	if !ok {
		return method{}, &rpc.Error{Code: rpc.VersionNotSupported, Message: "This version of A2A is not spoken here: there are 0.3 and 1.0.",
			About: map[string]string{"supportedVersions": "0.3, 1.0"}}
	}
	if v == nil {
		v = v03
		if _, ok := methods[v10][c.method]; ok {
			v = v10
		}
	}
	c.version, c.parser.Dialect = v, v.Dialect
	m, ok := methods[v][c.method]
	if !ok {
		return m, &rpc.Error{Code: jsonrpc.MethodNotFound, Message: "Unknown method " + request.Short(c.method) + " in A2A " + v.Name + "."}
	}
	return m, nil
}
