package toolenv

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/store/vault"
	"github.com/parley-server/parley/internal/tool"
)

// Send sends a request of a tool call, like Run.Do.
type Send = func(call string, req *http.Request) (*http.Response, error)

// Route opens the way to one tool server. Its requests reach only this host, name:port, and can carry
// only the named credentials; the run's commands and http_request can use neither. Stands are the
// placeholders of the credentials. Requests may be sent by several goroutines.
func (x *Run) Route(ctx context.Context, host string, credentials []string) (send Send, stands map[string]string, err error) {
	return x.route(ctx, Policy{Hosts: []string{host}}, credentials, nil)
}

// RoutePublic opens the way to public hosts, and to those that the operator has allowed by name, for
// requests to addresses that a tool server has chosen.
func (x *Run) RoutePublic(ctx context.Context, credentials []string) (send Send, stands map[string]string, err error) {
	return x.route(ctx, Policy{Public: true}, credentials, nil)
}

// RouteToken is Route for requests that can also carry a token, which is not in the vault. The token
// is bound to its hosts and removed from answers, like a credential, and has a placeholder under its
// name.
func (x *Run) RouteToken(ctx context.Context, host string, credentials []string, token vault.Opened) (send Send, stands map[string]string,
	err error) {
	return x.route(ctx, Policy{Hosts: []string{host}}, credentials, []vault.Opened{token})
}

func (x *Run) route(ctx context.Context, policy Policy, credentials []string, own []vault.Opened) (send Send, stands map[string]string,
	err error) {
	host := strings.Join(policy.Hosts, " ") // "": public hosts
	key := host + " " + strings.Join(credentials, " ")
	for _, o := range own {
		key += fmt.Sprintf(" %s.%d", o.Name, o.Version)
	}
	n := x.routes[key]
	if n == nil {
		if n, err = x.newNetwork(ctx, credentials, policy, own); err != nil {
			return nil, nil, err
		}
		if x.routes == nil {
			x.routes = make(map[string]*network)
		}
		x.routes[key] = n
	}
	for _, name := range credentials {
		if n.stands[name] == "" {
			return nil, nil,
				tool.Refusal(
					fmt.Sprintf(
						"The secret %s, which requests to %s carry, has no value. An administrator can set it: parley "+
							"secrets set %s", name, cmp.Or(host, "the authorization server"), name))
		}
	}
	return func(call string, req *http.Request) (*http.Response, error) {
		res, err := n.run.Do(req.WithContext(context.WithValue(req.Context(), callKey{}, call)))
		if err != nil {
			return nil, describeFailure(req, err)
		}
		res.Body = &answer{res.Body, req}
		return res, nil
	}, n.stands, nil
}

// callKey is the key of the call in the context of a request to a tool server.
type callKey struct{}

// callOf returns the tool call that a request belongs to.
func (x *Run) callOf(ctx context.Context) string {
	if call, ok := ctx.Value(callKey{}).(string); ok {
		return call
	}
	return x.call
}

// isOfServer reports whether a request goes to a tool server.
func isOfServer(ctx context.Context) bool { return ctx.Value(callKey{}) != nil }

// AtClose registers a function that Close calls before it ends the requests to tool servers.
func (x *Run) AtClose(f func()) { x.closers = append(x.closers, f) }

// farewell is how long the functions of AtClose may use the network.
const farewell = time.Second

func (x *Run) closeRoutes() {
	end := time.AfterFunc(farewell, x.endRoutes)
	for _, f := range x.closers {
		f()
	}
	end.Stop()
	x.endRoutes()
	x.closers, x.routes = nil, nil
}

func (x *Run) endRoutes() {
	for _, n := range x.routes {
		n.run.Close()
	}
}

// TurnID returns the id of the run's turn.
func (x *Run) TurnID() uuid.UUID { return x.t.Turn }
