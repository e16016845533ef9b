package mcpauth

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/google/uuid"
	"golang.org/x/oauth2"

	"github.com/parley-server/parley/internal/store/toolset"
	"github.com/parley-server/parley/internal/store/vault"
	"github.com/parley-server/parley/internal/tool"
	"github.com/parley-server/parley/internal/tool/mcptool"
)

// earlier is how long before its end a token is refreshed: a call must not lose it on the way.
const earlier = 30 * time.Second

// isOver reports whether a token should be refreshed.
func (t tokens) isOver() bool { return !t.Expiry.IsZero() && time.Until(t.Expiry) < earlier }

// Of returns the tokens of a caller. caller returns its name, as toolset.Store.TurnHolder does; it is
// needed for servers where each caller has a grant.
func (s *Service) Of(workspace uuid.UUID, caller func(context.Context) (string, error)) mcptool.Grants {
	return grants{s, workspace, caller}
}

// OfCaller returns the tokens of a caller that is known.
func (s *Service) OfCaller(workspace uuid.UUID, caller string) mcptool.Grants {
	return s.Of(workspace, func(context.Context) (string, error) { return caller, nil })
}

type grants struct {
	*Service
	workspace uuid.UUID
	caller    func(context.Context) (string, error)
}

// Token implements mcptool.Grants.
func (g grants) Token(ctx context.Context, server toolset.Server, rejected int64) (mcptool.Token, error) {
	holder := ""
	if server.Auth.PerCaller {
		var err error
		if holder, err = g.caller(ctx); err != nil {
			return mcptool.Token{}, err
		}
	}
	held, ok, err := g.Store.Grant(ctx, server.ID, holder)
	if err != nil {
		return mcptool.Token{}, err
	}
	if !ok {
		return mcptool.Token{}, mcptool.ErrNotConnected
	}
	t, err := g.openTokens(held)
	if err != nil {
		return mcptool.Token{}, err
	}
	if held.Version == rejected || t.isOver() {
		if held, t, err = g.refresh(ctx, g.workspace, server, holder, rejected); err != nil {
			return mcptool.Token{}, err
		}
	}
	return mcptool.Token{Value: vault.NewValue([]byte(t.Access)), Version: held.Version}, nil
}

func (s *Service) openTokens(g toolset.Grant) (t tokens, err error) {
	return t, s.open(g.Tokens, &t, grantPurpose, g.Server.String(), g.Holder)
}

// refresh returns a grant with tokens that are neither over nor rejected. The first replica refreshes
// them under a lock, and the others get its tokens. A grant that cannot be refreshed is removed.
func (s *Service) refresh(ctx context.Context, workspace uuid.UUID, server toolset.Server, holder string, rejected int64) (toolset.Grant, tokens, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	var t tokens
	fresh, err := s.Store.RefreshGrant(ctx, server.ID, holder, func(ctx context.Context, held toolset.Grant) (toolset.Grant, error) {
		var err error
		if t, err = s.openTokens(held); err != nil || held.Version != rejected && !t.isOver() {
			return held, err
		}
		if t.Refresh == "" {
			return toolset.Grant{}, nil
		}
		next, err := s.renew(ctx, workspace, t)
		reason, code := reasonOf(err)
		switch {
		case err == nil:
		case code == "invalid_grant":
			s.Log.InfoContext(ctx, "a grant of a tool server has ended", "workspace", workspace, "server", server.Name)
			return toolset.Grant{}, nil
		case code == "invalid_client" && server.Auth.ClientID == "": // the registration is forgotten there
			return toolset.Grant{}, s.Store.ForgetClient(ctx, server.ID, held.Issuer)
		default:
			return held, tool.Refusal(fmt.Sprintf("The access to the tool server %s could not be renewed. %s", server.Name, reason))
		}
		t = t.with(next)
		held.ExpiresAt = expiryOf(t)
		held.Tokens, err = s.seal(t, grantPurpose, held.Server.String(), held.Holder)
		return held, err
	})
	if errors.Is(err, toolset.ErrNoGrant) {
		return fresh, t, mcptool.ErrNotConnected
	}
	return fresh, t, err
}

// renew exchanges a refresh token.
func (s *Service) renew(ctx context.Context, workspace uuid.UUID, t tokens) (*oauth2.Token, error) {
	env := s.Open(workspace)
	defer env.Close()
	w := &web{env: env, secret: t.Named, resource: t.Resource}
	secret, err := w.standIn(ctx)
	if err != nil {
		return nil, err
	}
	ctx = context.WithValue(ctx, oauth2.HTTPClient, w.httpClient())
	return s.config(t.client, t.TokenURL, secret).TokenSource(ctx, &oauth2.Token{RefreshToken: t.Refresh}).Token()
}

// with returns the tokens after an answer of the authorization server, which may keep the refresh
// token.
func (t tokens) with(next *oauth2.Token) tokens {
	t.Access, t.Expiry = next.AccessToken, next.Expiry
	if next.RefreshToken != "" {
		t.Refresh = next.RefreshToken
	}
	return t
}

func expiryOf(t tokens) *time.Time {
	if t.Expiry.IsZero() {
		return nil
	}
	return &t.Expiry
}

// maxForm limits the body of a request for tokens.
const maxForm = 64 << 10

// withResource returns a request with the resource in its form, if it is one for tokens.
func (w *web) withResource(r *http.Request) (*http.Request, error) {
	if w.resource == "" || r.Method != http.MethodPost || r.Body == nil || !strings.HasPrefix(r.Header.Get("Content-Type"), "application/x-www-form-urlencoded") {
		return r, nil
	}
	raw, err := io.ReadAll(io.LimitReader(r.Body, maxForm))
	r.Body.Close()
	if err != nil {
		return nil, fmt.Errorf("read a form: %w", err)
	}
	form, err := url.ParseQuery(string(raw))
	if err != nil {
		return nil, errors.New("the form of a request for tokens is not valid")
	}
	form.Set("resource", w.resource)
	body := form.Encode()
	out := r.Clone(r.Context())
	out.Body, out.ContentLength, out.GetBody = io.NopCloser(strings.NewReader(body)), int64(len(body)), nil
	return out, nil
}
