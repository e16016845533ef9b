package mcpauth

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"golang.org/x/oauth2"

	"github.com/parley-server/parley/internal/store/toolset"
	"github.com/parley-server/parley/internal/tool"
)

const (
	storeTime = 10 * time.Second                        // limits how long storing refreshed tokens takes
	claimTime = requestTime + storeTime + 5*time.Second // a replica that dies blocks a refresh for this time
	pollEvery = 100 * time.Millisecond                  // while another replica refreshes
)

// refreshKey names the tokens that a refresh replaces.
type refreshKey struct {
	grant   uuid.UUID
	version int64
}

// refreshing is a refresh in this process.
type refreshing struct {
	done   chan struct{} // closed when the rest is set
	grant  toolset.Grant
	tokens tokens
	err    error
	left   bool // its caller was canceled, so another caller of this process refreshes
}

// refresh returns a grant with other tokens than held. One caller of a process refreshes them or waits
// for another replica, and the others get its result. None of them keeps a connection to the database.
func (s *Service) refresh(
	ctx context.Context, workspace uuid.UUID, server toolset.Server, held toolset.Grant, t tokens,
) (toolset.Grant, tokens, error) {
	key := refreshKey{held.ID, held.Version}
	for {
		own := &refreshing{done: make(chan struct{})}
		first, others := s.refreshes.LoadOrStore(key, own)
		r := first.(*refreshing)
		if !others {
			func() {
				defer close(r.done)
				defer s.refreshes.Delete(key)
				r.left = true // if it panics
				r.grant, r.tokens, r.err = s.claim(ctx, workspace, server, held, t)
				r.left = r.err != nil && ctx.Err() != nil
			}()
			return r.grant, r.tokens, r.err
		}
		select {
		case <-r.done:
		case <-ctx.Done():
			return held, t, ctx.Err()
		}
		if !r.left {
			return r.grant, r.tokens, r.err
		}
	}
}

// claim refreshes tokens, or waits until another replica has refreshed them.
func (s *Service) claim(
	ctx context.Context, workspace uuid.UUID, server toolset.Server, held toolset.Grant, t tokens,
) (toolset.Grant, tokens, error) {
	for {
		ok, err := s.Store.ClaimRefresh(ctx, held, claimTime)
		if err != nil {
			return held, t, err
		}
		if ok {
			return s.replace(context.WithoutCancel(ctx), workspace, server, held, t)
		}
		now, fresh, err := s.read(ctx, server.ID, held.Holder)
		if err != nil || now.Version != held.Version {
			return now, fresh, err
		}
		select {
		case <-time.After(pollEvery):
		case <-ctx.Done():
			return held, t, ctx.Err()
		}
	}
}

// replace refreshes the tokens of a claimed grant. It does not end with the call that needs them: the
// authorization server may have replaced the refresh token already. A grant that cannot be refreshed
// is removed.
func (s *Service) replace(
	ctx context.Context, workspace uuid.UUID, server toolset.Server, held toolset.Grant, t tokens,
) (toolset.Grant, tokens, error) {
	var next *oauth2.Token
	var err error
	if t.Refresh != "" {
		next, err = s.renew(ctx, workspace, t)
	}
	ctx, cancel := context.WithTimeout(ctx, storeTime)
	defer cancel()
	reason, code := reasonOf(err)
	switch {
	case err != nil && code == "invalid_client" && server.Auth.ClientID == "": // the registration is forgotten there
		if err := s.Store.ForgetClient(ctx, server.ID, held.Issuer); err != nil {
			return held, t, err
		}
	case err != nil && code != "invalid_grant":
		if err := s.Store.ReleaseRefresh(ctx, held); err != nil {
			return held, t, err
		}
		return held, t, tool.Refusal(fmt.Sprintf("The access to the tool server %s could not be renewed. %s", server.Name, reason))
	}
	if next == nil {
		s.Log.InfoContext(ctx, "a grant of a tool server has ended", "workspace", workspace, "server", server.Name)
		if err := s.Store.EndGrant(ctx, held); err != nil {
			return held, t, err
		}
		return s.read(ctx, server.ID, held.Holder) // another one, if it was replaced meanwhile
	}
	t, held.ExpiresAt = t.with(next), expiryOf(t.with(next))
	if held.Tokens, err = s.seal(t, grantPurpose, held.Server.String(), held.Holder); err != nil {
		return held, t, err
	}
	fresh, ok, err := s.Store.StoreRefresh(ctx, held)
	if err == nil && !ok {
		return s.read(ctx, server.ID, held.Holder)
	}
	return fresh, t, err
}

// renew exchanges a refresh token.
func (s *Service) renew(ctx context.Context, workspace uuid.UUID, t tokens) (*oauth2.Token, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	env := s.Open(workspace)
	defer env.Close()
	w := &web{env: env, secret: t.Named, resource: t.Resource}
	secret, err := w.standIn(ctx)
	if err != nil {
		return nil, err
	}
	ctx = context.WithValue(ctx, oauth2.HTTPClient, w.httpClient())
	token, err := s.config(t.client, t.TokenURL, secret).TokenSource(ctx, &oauth2.Token{RefreshToken: t.Refresh}).Token()
	if err != nil {
		return nil, err
	}
	return token, checkToken(token)
}
