package admin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/store/toolset"
	"github.com/parley-server/parley/internal/tool"
)

// ConnectTime limits operations that connect to a tool server.
const ConnectTime = 2 * time.Minute

// offered is a new entry with the tools that its server offers.
type offered struct {
	entry    toolset.Entry
	protocol string
	tools    []toolset.Offer
	http     []toolset.HTTPTool // of an HTTP API
}

// AddToolServer connects to a server and adds it with the tools that it offers. One with OAuth has no
// tools until it is connected. The violation of a server that cannot be reached names its url.
func (s Stores) AddToolServer(ctx context.Context, workspace uuid.UUID, e toolset.Entry) (toolset.Server, []toolset.Skipped, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), ConnectTime)
	defer cancel()
	o, err := s.askNewServer(ctx, workspace, e)
	if err != nil {
		return toolset.Server{}, nil, err
	}
	return s.Toolset.Add(ctx, workspace, e, o.protocol, o.tools)
}

// askNewServer lists the tools that the server of a new entry offers. If it cannot be reached, the
// result has the entry alone.
func (s Stores) askNewServer(ctx context.Context, workspace uuid.UUID, e toolset.Entry) (*offered, error) {
	if vs := e.Violations(); len(vs) > 0 {
		return nil, fault.Invalid(vs...)
	}
	if e.Auth.OAuth { // it lists its tools when it is connected
		return &offered{entry: e}, nil
	}
	offers, protocol, err := s.Probe.List(ctx, workspace, e.Server())
	if refused, ok := errors.AsType[tool.Refusal](err); ok {
		return &offered{entry: e}, fault.Invalid(fault.Violation{Param: "/url", Rule: "unreachable", Message: string(refused)})
	}
	return &offered{entry: e, protocol: protocol, tools: offers}, err
}

// RefreshToolServer reads the tools that a server offers now. A server that cannot be reached is an
// OBJECT_CONFLICT.
func (s Stores) RefreshToolServer(ctx context.Context, workspace uuid.UUID, name string) (toolset.Server, []toolset.Skipped, error) {
	s.Probe = s.Probe.As(callerOf(ctx))
	return s.refreshToolServer(ctx, workspace, name)
}

func (s Stores) refreshToolServer(ctx context.Context, workspace uuid.UUID, name string) (toolset.Server, []toolset.Skipped, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), ConnectTime)
	defer cancel()
	server, err := s.Toolset.Find(ctx, workspace, name)
	if err != nil {
		return server, nil, err
	}
	if server.Kind == toolset.HTTP {
		return server, nil, fault.New(fault.ObjectConflict, "The tools of %s are those that an administrator has defined, "+
			"so it has nothing to refresh. Replace them with parley tools add %[1]s --replace.", name)
	}
	offers, protocol, err := s.Probe.List(ctx, workspace, server)
	if refused, ok := errors.AsType[tool.Refusal](err); ok {
		return server, nil, errors.Join(s.Toolset.NoteUse(ctx, server.ID, string(refused)),
			fault.New(fault.ObjectConflict, "%s %s", string(refused), standingText(server)))
	}
	if err != nil {
		return server, nil, err
	}
	fresh, skipped, err := s.Toolset.Refresh(ctx, workspace, server.Name, protocol, offers)
	if f := fault.From(err); f != nil { // the page of the server shows it
		err = errors.Join(s.Toolset.NoteUse(ctx, server.ID, f.Message), err)
	}
	return fresh, skipped, err
}

// TestTool calls a tool that is usable, without an approval. The tool is named as the server or as
// the model sees it.
func (s Stores) TestTool(ctx context.Context, workspace uuid.UUID, server, name string, input json.RawMessage) (tool.Result, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), ConnectTime)
	defer cancel()
	of, err := s.Toolset.Find(ctx, workspace, server)
	if err != nil {
		return tool.Result{}, err
	}
	i := slices.IndexFunc(of.Tools, func(t toolset.Tool) bool { return t.Name == name || t.OwnName == name })
	if i < 0 {
		return tool.Result{}, fault.New(fault.ObjectNotFound, "The tool server %s has no tool %.80q. parley tools "+
			"show %[1]s lists its tools.", server, name)
	}
	if err := checkUsable(of, of.Tools[i]); err != nil {
		return tool.Result{}, err
	}
	call := s.Probe.As(callerOf(ctx)).Call
	if of.Kind == toolset.HTTP {
		call = s.HTTPProbe.Call
	}
	res, err := call(ctx, workspace, of, of.Tools[i], input)
	if refused, ok := errors.AsType[tool.Refusal](err); ok {
		return tool.Reject(string(refused)), nil
	}
	if shown, cut := event.CutOutput(res.Output); cut {
		res.Output = shown + "\n[cut here]"
	}
	return res, err
}

// standingText says what stays in force if a server could not be asked.
func standingText(s toolset.Server) string {
	usable := 0
	for _, t := range s.Tools {
		if t.State() == toolset.Usable {
			usable++
		}
	}
	if usable == 0 {
		return "Nothing has changed: none of its tools is usable."
	}
	return fmt.Sprintf("Nothing has changed: the accepted definitions stay in force, and %d of %d tools are usable.", usable, len(s.Tools))
}

// checkUsable fails for a tool that the model is not offered, with the remedy.
func checkUsable(s toolset.Server, t toolset.Tool) error {
	why := map[toolset.State]string{
		toolset.New:      "it is new. Read and accept its definition: parley tools accept %[1]s %[2]s",
		toolset.Changed:  "its server has changed the definition. Read and accept the change: parley tools accept %[1]s %[2]s",
		toolset.Missing:  "its server does not offer it any more. Ask the server again: parley tools refresh %[1]s",
		toolset.Disabled: "an administrator has disabled it. Enable it: parley tools enable %[1]s %[2]s",
	}[t.State()]
	if !s.Enabled {
		why = "its server is disabled. Enable it: parley tools enable %[1]s"
	}
	if why == "" {
		return nil
	}
	return fault.New(fault.ObjectConflict, "%s", fmt.Sprintf("The tool %[3]s is not usable: "+why, s.Name, t.OwnName, t.Name))
}
