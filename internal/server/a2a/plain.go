package a2a

import (
	"encoding/json"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"github.com/parley-server/parley/internal/server"
	"github.com/parley-server/parley/internal/server/a2a/call"
	"github.com/parley-server/parley/internal/server/a2a/message"
	"github.com/parley-server/parley/internal/server/a2a/rpc"
	"github.com/parley-server/parley/internal/server/request"
	"github.com/parley-server/parley/internal/store/apikey"
	"github.com/parley-server/parley/internal/store/ratelimit"
)

// PlainPath is the address of the transport HTTP+JSON, for version 1.0. Its methods are those of
// JSON-RPC.
const PlainPath = Path + "/v1"

// plainType is the media type that clients of this transport may use for JSON.
const plainType = "application/a2a+json"

// plainRoutes returns the handlers of HTTP+JSON.
func (s *api) plainRoutes() server.Routes {
	op := func(name string) server.Operation {
		return server.Operation{Scope: apikey.A2A, Class: ratelimit.Calls, Serve: func(w http.ResponseWriter, r *server.Request) error {
			return s.servePlain(w, r, name)
		}}
	}
	routes := make(server.Routes)
	for path, methods := range map[string]map[string]server.Operation{
		"/message:send":      {http.MethodPost: op("SendMessage")},
		"/message:stream":    {http.MethodPost: op("SendStreamingMessage")},
		"/tasks":             {http.MethodGet: op("ListTasks")},
		"/tasks/{task}":      {http.MethodGet: op("GetTask")},
		"/extendedAgentCard": {http.MethodGet: op("GetExtendedAgentCard")},
		// The protocol has GET, and its client in JavaScript POST.
		"/tasks/{task}:subscribe": {http.MethodGet: op("SubscribeToTask"), http.MethodPost: op("SubscribeToTask")},
		"/tasks/{task}:cancel":    {http.MethodPost: op("CancelTask")},
		"/tasks/{task}/pushNotificationConfigs": {
			http.MethodPost: op("CreateTaskPushNotificationConfig"), http.MethodGet: op("ListTaskPushNotificationConfigs")},
		"/tasks/{task}/pushNotificationConfigs/{config}": {
			http.MethodGet: op("GetTaskPushNotificationConfig"), http.MethodDelete: op("DeleteTaskPushNotificationConfig")},
	} {
		routes[PlainPath+path] = s.HandleMethods(methods)
	}
	return routes
}

// servePlain calls a method with the parameters of a request of HTTP+JSON.
func (s *api) servePlain(w http.ResponseWriter, r *server.Request, name string) error {
	c := &call.Call{Server: s.Server, W: w, R: r.Request, Caller: r.Caller, Base: s.Base(r.Request), Version: call.V10, Method: name,
		Plain: true}
	members, err := plainMembers(w, r, name)
	if err != nil {
		return c.WriteError(err)
	}
	c.Params = request.Fields{Checks: new(request.Checks), Members: request.Given(members), ProtoJSON: true}
	c.Parser = message.Parser{Dialect: c.Version.Dialect, Params: c.Params, Places: make(map[string]string),
		Workspace: c.Caller.Workspace.Slug}
	if v, ok := call.VersionOf(r.Request); !ok || v == call.V03 {
		return c.WriteError(&rpc.Error{Code: rpc.VersionNotSupported, Message: "HTTP+JSON is spoken here in A2A 1.0.",
			About: map[string]string{"supportedVersions": "1.0"}})
	}
	if err := methods[call.V10][name].run(c); err != nil {
		return c.WriteError(err)
	}
	return nil
}

// plainMembers returns the parameters of a call: those of the body, the path and the query.
func plainMembers(w http.ResponseWriter, r *server.Request, name string) (members []request.Member, err error) {
	hasBody := name == "SendMessage" || name == "SendStreamingMessage" || name == "CreateTaskPushNotificationConfig"
	if hasBody {
		if strings.HasPrefix(r.Header.Get("Content-Type"), plainType) {
			r.Header.Set("Content-Type", strings.Replace(r.Header.Get("Content-Type"), plainType, request.JSONType, 1))
		}
		body, err := request.ReadJSON(w, r.Request)
		if err == nil {
			members, err = request.Object(body)
		}
		if err != nil {
			return nil, err
		}
	}
	set := func(name, value string) {
		members = slices.DeleteFunc(members, func(m request.Member) bool { return m.Name == name })
		members = append(members, request.Member{Name: name, Value: request.QuoteText(value)})
	}
	task, config := r.PathValue("task"), r.PathValue("config")
	switch {
	case config != "":
		set("taskId", task)
		set("id", config)
	case strings.Contains(name, "PushNotification"):
		set("taskId", task)
	case task != "":
		set("id", task)
	}
	if hasBody {
		return members, nil
	}
	for name, values := range r.URL.Query() {
		if value := values[0]; literals[name] != nil && literals[name].MatchString(value) {
			members = append(members, request.Member{Name: name, Value: json.RawMessage(value)})
		} else if name != "A2A-Version" && name != "id" && name != "taskId" {
			members = append(members, request.Member{Name: name, Value: request.QuoteText(value)})
		}
	}
	return members, nil
}

// literals are the parameters of a query that are not texts in JSON.
var literals = map[string]*regexp.Regexp{
	"historyLength": regexp.MustCompile(`^-?[0-9]{1,9}$`), "pageSize": regexp.MustCompile(`^-?[0-9]{1,9}$`),
	"includeArtifacts": regexp.MustCompile(`^(true|false)$`),
}
