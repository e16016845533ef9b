package mcptool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/parley-server/parley/internal/store/toolset"
	"github.com/parley-server/parley/internal/store/vault"
	"github.com/parley-server/parley/internal/text"
	"github.com/parley-server/parley/internal/tool"
	"github.com/parley-server/parley/internal/tool/remote"
)

const (
	maxListed    = 1000 // tools that a server lists
	maxMessage   = 2000 // characters of a server's error
	refreshEvery = time.Hour
)

// peer is a server in a run. Its session opens with the first call, and ends with the run.
type peer struct {
	server   toolset.Server
	env      Env
	registry Registry
	uses     remote.Uses
	grants   Grants    // for a server with OAuth
	grant    uuid.UUID // that the session's token is from; uuid.Nil: there is none
	token    int64     // version of the session's token
	rejected int64     // version of a token that the server does not accept

	link    *link
	session *mcp.ClientSession
	usable  []string // names of tools, if the definitions were refreshed in this run
	closing bool     // close is registered
}

// open opens the session, if there is none.
func (p *peer) open(ctx context.Context, call string) error {
	if p.session != nil {
		p.link.beginCall(call)
		return nil
	}
	if err := p.openLink(ctx); err != nil {
		return err
	}
	p.link.greet(call)
	client := mcp.NewClient(&mcp.Implementation{Name: "parley", Version: "1"}, &mcp.ClientOptions{
		Capabilities: &mcp.ClientCapabilities{}, MultiRoundTrip: &mcp.MultiRoundTripOptions{Disabled: true},
	})
	session, err := client.Connect(ctx, &mcp.StreamableClientTransport{
		Endpoint: p.server.URL, DisableStandaloneSSE: true, MaxRetries: -1, MaxEventSize: maxAnswer,
		HTTPClient: &http.Client{Transport: p.link, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }},
	}, &mcp.ClientSessionOptions{ProtocolVersion: p.server.Protocol})
	if err != nil {
		p.link.end()
		return err
	}
	p.session = session
	if !p.closing {
		p.closing = true
		p.env.AtClose(p.close)
	}
	return nil
}

// openLink opens the way to the server.
func (p *peer) openLink(ctx context.Context) error {
	p.link = nil
	host, err := remote.HostOf(p.server.URL)
	if err != nil {
		return err
	}
	send, header, err := p.route(ctx, host)
	if err != nil {
		return err
	}
	p.link = &link{send: send, name: p.server.Name, header: header}
	p.link.ended, p.link.end = context.WithCancel(context.Background())
	return nil
}

// route opens the way to the server, with the headers of its requests.
func (p *peer) route(ctx context.Context, host string) (send remote.Send, header map[string]string, err error) {
	var stands map[string]string
	fill := func(name string) string { return stands[name] }
	if !p.server.Auth.OAuth {
		send, stands, err = p.env.Route(ctx, host, p.server.Secrets())
		return send, p.server.FillHeaders(fill), err
	}
	if p.grants == nil {
		return nil, nil, ErrNotConnected
	}
	p.grant = uuid.Nil
	token, err := p.grants.Token(ctx, p.server, p.rejected)
	if err != nil {
		return nil, nil, err
	}
	p.grant, p.token = token.Grant, token.Version
	name := p.server.Name + ".oauth" // no name of a credential
	own := vault.Opened{Credential: vault.Credential{Name: name, Version: int(token.Version), Hosts: []string{host},
		AllowHTTP: strings.HasPrefix(p.server.URL, "http:")}, Value: token.Value}
	if send, stands, err = p.env.RouteToken(ctx, host, p.server.Secrets(), own); err != nil {
		return nil, nil, err
	}
	header = p.server.FillHeaders(fill)
	header["Authorization"] = "Bearer " + stands[name]
	return send, header, nil
}

// connect returns the error of a call without a grant, or whose grant lacks scopes.
func (p *peer) connect(scopes []string) error {
	return tool.Connect{Server: p.server.Name, Shared: !p.server.Auth.PerCaller, Grant: p.grant, Scopes: scopes}
}

// lackedScopes returns the scopes for which the server has rejected the call, nil if it was not that.
func (p *peer) lackedScopes() []string {
	if !p.server.Auth.OAuth {
		return nil
	}
	p.link.mu.Lock()
	defer p.link.mu.Unlock()
	return p.link.scopes
}

// rejectToken ends a session whose token the server does not accept, and reports whether it was that.
func (p *peer) rejectToken() bool {
	status, _ := p.link.reason()
	if !p.server.Auth.OAuth || status != http.StatusUnauthorized {
		return false
	}
	p.drop()
	p.rejected = p.token
	return true
}

// close ends the session. The environment bounds its requests.
func (p *peer) close() {
	if p.session != nil {
		p.link.greet("")
		_ = p.session.Close() // the server forgets the session by itself
		p.link.end()
		p.session = nil
	}
}

// drop ends a session that does not work, without a request.
func (p *peer) drop() {
	if p.session != nil {
		p.link.end()
		_ = p.session.Close()
		p.session = nil
	}
}

// explain returns the reason of a failure of the link for the model and for the administrator.
// isAnswer reports that the server has rejected the call, so it had no effect.
func (p *peer) explain(err error) (why string, isAnswer bool) {
	status, failure := p.link.reason()
	if refused, ok := errors.AsType[tool.Refusal](failure); ok {
		return string(refused), status != 0 && status < 500 && status != http.StatusTooManyRequests
	}
	if answered, ok := errors.AsType[*jsonrpc.Error](err); ok && failure == nil && !errors.Is(err, mcp.ErrConnectionClosed) {
		return fmt.Sprintf("The tool server %s answers: %s", p.server.Name, text.Truncate(answered.Message, maxMessage)), true
	}
	return p.invalid(), false
}

func (p *peer) invalid() string {
	return fmt.Sprintf("The tool server %s sent an answer that is not valid MCP.", p.server.Name)
}

// refresh compares the server's definitions with the accepted ones if that was long ago.
func (p *peer) refresh(ctx context.Context) error {
	if p.registry == nil || p.usable != nil || p.server.RefreshedAt != nil && time.Since(*p.server.RefreshedAt) < refreshEvery {
		return nil
	}
	offers, err := p.list(ctx)
	if err != nil {
		return err
	}
	usable, ok := p.registry.Refresh(ctx, p.server, p.protocol(), offers)
	if !ok {
		return errNotCompared
	}
	p.usable = usable
	return nil
}

// isUsable reports whether the model may still use a tool.
func (p *peer) isUsable(name string) bool { return p.usable == nil || slices.Contains(p.usable, name) }

func (p *peer) protocol() string {
	if r := p.session.InitializeResult(); r != nil {
		return r.ProtocolVersion
	}
	return ""
}

// list lists the tools of the server.
func (p *peer) list(ctx context.Context) ([]toolset.Offer, error) {
	offers := []toolset.Offer{}
	params := &mcp.ListToolsParams{}
	for {
		res, err := p.session.ListTools(ctx, params)
		if err != nil {
			return nil, err
		}
		for _, t := range res.Tools {
			if t != nil {
				offers = append(offers, offerOf(t))
			}
		}
		if res.NextCursor == "" || res.NextCursor == params.Cursor || len(offers) >= maxListed {
			return offers, nil
		}
		params.Cursor = res.NextCursor
	}
}

func offerOf(t *mcp.Tool) toolset.Offer {
	o := toolset.Offer{OwnName: t.Name, Definition: toolset.Definition{Title: t.Title, Description: t.Description}}
	if schema, err := json.Marshal(t.InputSchema); err == nil {
		o.Schema = schema
	}
	if a := t.Annotations; a != nil {
		o.Annotations = toolset.Annotations{ReadOnly: a.ReadOnlyHint, Destructive: a.DestructiveHint, Idempotent: a.IdempotentHint,
			OpenWorld: a.OpenWorldHint}
	}
	return o
}

// listTime limits how long List takes.
const listTime = 30 * time.Second

// List connects to a server and lists its tools. A failure is a tool.Refusal with the reason.
func List(ctx context.Context, env Env, grants Grants, server toolset.Server) (offers []toolset.Offer, protocol string, err error) {
	ctx, cancel := context.WithTimeout(ctx, listTime)
	defer cancel()
	server.Protocol = "" // it may have changed
	p := &peer{server: server, env: env, grants: grants}
	defer p.close()
	for again := true; again; {
		if err = p.open(ctx, "refresh"); err == nil {
			offers, err = p.list(ctx)
		}
		again = err != nil && p.link != nil && p.rejected == 0 && p.rejectToken()
	}
	switch {
	case err == nil:
		return offers, p.protocol(), nil
	case ctx.Err() != nil:
		p.drop()
		return nil, "", tool.Refusal(fmt.Sprintf("The tool server %s did not list its tools within %d seconds.", server.Name,
			listTime/time.Second))
	case errors.Is(err, ErrNotConnected):
		return nil, "", notConnected(server)
	case p.link == nil: // a refusal, or no database
		return nil, "", err
	}
	why, _ := p.explain(err)
	return nil, "", tool.Refusal(why)
}

// notConnected is the error for an administrator who asks a server that is not connected.
func notConnected(server toolset.Server) error {
	return tool.Refusal(fmt.Sprintf("The tool server %s is not connected. Connect it: parley tools connect %[1]s", server.Name))
}
