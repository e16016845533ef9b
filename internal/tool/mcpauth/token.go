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

// isOver reports whether a token should be refreshed. One that cannot be refreshed is used to its end.
func (t tokens) isOver() bool {
	if t.Expiry.IsZero() {
		return false
	}
	left := time.Until(t.Expiry)
	return left <= 0 || t.Refresh != "" && left < earlier
}

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
	held, t, err := g.read(ctx, server.ID, holder)
	if err == nil && (held.Version == rejected || t.isOver()) {
		held, t, err = g.refresh(ctx, g.workspace, server, held, t)
	}
	if err != nil {
		return mcptool.Token{}, err
	}
	return mcptool.Token{Value: vault.NewValue([]byte(t.Access)), Grant: held.ID, Version: held.Version}, nil
}

// read returns a grant with its tokens, or mcptool.ErrNotConnected.
func (s *Service) read(ctx context.Context, server uuid.UUID, holder string) (held toolset.Grant, t tokens, err error) {
	held, ok, err := s.Store.Grant(ctx, server, holder)
	if err == nil && !ok {
		err = mcptool.ErrNotConnected
	}
	if err == nil {
		err = s.open(held.Tokens, &t, grantPurpose, held.Server.String(), held.Holder)
	}
	return held, t, err
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

// checkToken returns an error for a token that cannot be used.
func checkToken(token *oauth2.Token) error {
	if !strings.EqualFold(token.Type(), "bearer") {
		return tool.Refusal("The authorization server has granted another kind of token than a bearer token.")
	}
	if isBad(token.AccessToken) || isBad(token.RefreshToken) {
		return tool.Refusal(fmt.Sprintf("The authorization server has granted a token that is not one line "+
			"of ASCII of at most %d bytes.", maxToken))
	}
	return nil
}

// maxToken limits a token.
const maxToken = 16 << 10

// isBad reports whether a token cannot be sent.
func isBad(token string) bool {
	return len(token) > maxToken || strings.ContainsFunc(token, func(r rune) bool { return r < 0x21 || r > 0x7e })
}

// maxForm limits the body of a request for tokens.
const maxForm = 64 << 10

// withResource returns a request with the resource in its form, if it is one for tokens.
func (w *web) withResource(r *http.Request) (*http.Request, error) {
	if w.resource == "" || r.Method != http.MethodPost || r.Body == nil || !strings.HasPrefix(r.Header.Get("Content-Type"),
		"application/x-www-form-urlencoded") {
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
