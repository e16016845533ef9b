// Package httptool calls the tools of HTTP APIs: it makes a signed request of a call, and a result of
// the response. Other packages decide where requests may go, insert the credentials and remove them
// from responses.
//
// It promises: a receiver that is down, slow or hostile makes a call fail with a reason for the
// model, and never the turn. Requests of a call are equal, and have the id of the call, so a
// receiver can recognize a repetition. A call is repeated only if it cannot have had an effect, or
// if its tool may be repeated. Redirects are not followed.
package httptool

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/schema"
	"github.com/parley-server/parley/internal/store/toolset"
	"github.com/parley-server/parley/internal/tool"
	"github.com/parley-server/parley/internal/tool/remote"
	"github.com/parley-server/parley/internal/tool/result"
)

// Env is what the tools of a run act with.
type Env interface {
	result.Env
	// Route opens the way to one host, name:port, for requests that may carry the named credentials.
	// stands are their placeholders.
	Route(ctx context.Context, host string, credentials []string) (send remote.Send, stands map[string]string, err error)
}

// Sender has what every request carries. Its zero value signs nothing.
type Sender struct {
	// Sign signs a request with the secrets of a workspace.
	Sign func(ctx context.Context, workspace uuid.UUID, h http.Header, id string, body []byte) error
	// Base is the public address of this service, to which later results are posted; "": only the path.
	Base string
}

// Tools returns the tools of HTTP APIs.
func Tools(env Env, registry remote.Registry, sender Sender, servers []toolset.Server) (tools []tool.Tool, err error) {
	for _, s := range servers {
		if s.Kind != toolset.HTTP {
			continue
		}
		uses := &remote.Uses{Registry: registry, Server: s}
		for _, def := range s.Tools {
			t, err := newTool(env, uses, sender, s, def)
			if err != nil {
				return nil, err
			}
			tools = append(tools, t)
		}
	}
	return tools, nil
}

// httpTool is one tool of an HTTP API.
type httpTool struct {
	env     Env
	uses    *remote.Uses // of the entry
	sender  Sender
	server  toolset.Server
	def     toolset.Tool
	request toolset.Request
	input   *schema.Schema
}

func newTool(env Env, uses *remote.Uses, sender Sender, server toolset.Server, def toolset.Tool) (*httpTool, error) {
	if def.Definition == nil || def.Definition.HTTP == nil {
		return nil, errors.New("the tool " + def.Name + " has no request")
	}
	input, err := schema.Compile(def.Definition.Schema)
	if err != nil {
		return nil, errors.New("the input schema of the tool " + def.Name + " cannot be read: " + err.Error())
	}
	return &httpTool{env, uses, sender, server, def, *def.Definition.HTTP, input}, nil
}

// Spec implements tool.Tool.
func (t *httpTool) Spec() tool.Spec {
	return tool.Spec{Name: t.def.Name, Description: t.def.Definition.Description, Schema: t.def.Definition.Schema,
		Idempotent: t.def.IsRepeatable(), Later: t.request.Later, UniqueID: true}
}

// Check implements tool.Checker. It reports what a request cannot carry, so that such a call needs no
// approval.
func (t *httpTool) Check(input json.RawMessage) (wrong string) {
	if wrong := t.input.Misfit(input); wrong != "" {
		return wrong
	}
	if _, err := t.build(input); err != nil {
		return err.Error()
	}
	return ""
}

// timeout returns the time for one request of a call.
func (t *httpTool) timeout() time.Duration {
	if t.request.Timeout > 0 {
		return time.Duration(t.request.Timeout) * time.Second
	}
	return t.server.Timeout
}
