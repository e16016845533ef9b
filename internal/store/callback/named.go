package callback

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/google/uuid"
)

// Auth holds the credentials that a report sends to its receiver, besides the signature. It is
// stored sealed.
type Auth struct {
	Token       string `json:"token,omitempty"`       // the receiver's own token, to recognize reports
	Scheme      string `json:"scheme,omitempty"`      // scheme of HTTP authentication
	Credentials string `json:"credentials,omitempty"` // for that scheme
}

// Named is a named callback, without its credentials.
type Named struct {
	Name     string
	URL      string
	Protocol Protocol
	Scheme   string // scheme of its authentication; "": none
}

// Named returns the named callbacks of a turn, oldest first.
func (s *Store) Named(ctx context.Context, workspace, turn uuid.UUID) ([]Named, error) {
	rows, err := s.q.CallbacksOf(ctx, workspace, turn)
	if err != nil {
		return nil, fmt.Errorf("list callbacks: %w", err)
	}
	list := make([]Named, len(rows))
	for i, r := range rows {
		auth, err := s.openAuth(r.WorkspaceID, r.TurnID, r.Name, r.Auth)
		if err != nil {
			return nil, err
		}
		address, err := s.openAddress(r.WorkspaceID, r.TurnID, r.Name, r.URL, r.Address)
		if err != nil {
			return nil, err
		}
		list[i] = Named{Name: r.Name, URL: address, Protocol: Protocol(r.Protocol), Scheme: auth.Scheme}
	}
	return list, nil
}

// Remove removes a named callback and drops its pending deliveries. It succeeds if the callback
// does not exist.
func (s *Store) Remove(ctx context.Context, workspace, turn uuid.UUID, name string) error {
	if err := s.q.CallbackDelete(ctx, workspace, turn, name); err != nil {
		return fmt.Errorf("remove callback: %w", err)
	}
	return nil
}

// authFor is the vault's purpose for the sealed value.
const authFor = "callback authentication"

func (s *Store) sealAuth(n New) ([]byte, error) {
	if n.Auth == (Auth{}) {
		return nil, nil
	}
	plain, err := json.Marshal(n.Auth)
	if err != nil {
		return nil, fmt.Errorf("encode authentication: %w", err)
	}
	sealed, err := s.keys.Seal(plain, authFor, n.Workspace.String(), n.Turn.String(), n.Name)
	if err != nil {
		return nil, fmt.Errorf("seal authentication: %w", err)
	}
	return sealed, nil
}

func (s *Store) openAuth(workspace, turn uuid.UUID, name string, sealed []byte) (a Auth, err error) {
	if sealed == nil {
		return a, nil
	}
	plain, err := s.keys.Open(sealed, authFor, workspace.String(), turn.String(), name)
	if err != nil {
		return a, fmt.Errorf("open authentication: %w", err)
	}
	if err := json.Unmarshal(plain, &a); err != nil {
		return a, fmt.Errorf("read authentication: %w", err)
	}
	return a, nil
}

// addHeaders adds the credentials that the receiver requires.
func (a Auth) addHeaders(h http.Header) {
	if a.Token != "" {
		h.Set("X-A2A-Notification-Token", a.Token)
	}
	if a.Scheme != "" {
		value := a.Scheme
		if a.Credentials != "" {
			value += " " + a.Credentials
		}
		h.Set("Authorization", value)
	}
}
