package toolset

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/parley-server/parley/db"
	"github.com/parley-server/parley/internal/fault"
)

// Grant is what a server with OAuth has granted to a holder: the workspace, whose name is "", or one
// of its callers. This package does not open its tokens.
type Grant struct {
	ID        uuid.UUID
	Server    uuid.UUID
	Holder    string // "", user:NAME, caller:ID or key:ID
	Version   int64  // counts the changes of the tokens
	Tokens    []byte // sealed
	Issuer    string // of the authorization server
	Scopes    []string
	ExpiresAt *time.Time // of the access token; nil: unknown
	CreatedAt time.Time
	UpdatedAt time.Time
}

// Holder returns who holds the grant of a server for a caller.
func (s Server) Holder(caller string) string {
	if s.Auth.PerCaller {
		return caller
	}
	return ""
}

// TurnHolder returns the holder of grants per caller in a turn.
func (s *Store) TurnHolder(ctx context.Context, turn uuid.UUID) (string, error) {
	return turnHolder(ctx, s.q, turn)
}

// TurnHolderIn is TurnHolder in a transaction.
func (s *Store) TurnHolderIn(ctx context.Context, tx pgx.Tx, turn uuid.UUID) (string, error) {
	return turnHolder(ctx, db.New(tx), turn)
}

func turnHolder(ctx context.Context, q *db.Queries, turn uuid.UUID) (string, error) {
	holder, err := q.ToolHolder(ctx, turn)
	if err != nil {
		return "", fmt.Errorf("find the caller of a turn: %w", err)
	}
	return holder, nil
}

// Grant returns a grant; ok is false if there is none.
func (s *Store) Grant(ctx context.Context, server uuid.UUID, holder string) (g Grant, ok bool, err error) {
	row, err := s.q.ToolGrant(ctx, server, holder)
	if errors.Is(err, pgx.ErrNoRows) {
		return g, false, nil
	}
	if err != nil {
		return g, false, fmt.Errorf("read a grant: %w", err)
	}
	return grantOf(row), true, nil
}

// ClaimRefresh lets one caller of all replicas refresh the tokens of a version of a grant, for a time.
// ok is false if another one does, or the version is not the current one.
func (s *Store) ClaimRefresh(ctx context.Context, g Grant, life time.Duration) (ok bool, err error) {
	n, err := s.q.ToolGrantClaim(ctx, life.Seconds(), g.ID, g.Version)
	if err != nil {
		return false, fmt.Errorf("claim a refresh: %w", err)
	}
	return n > 0, nil
}

// StoreRefresh ends a claim with refreshed tokens, which get a version of their own. ok is false if
// the grant was removed or replaced meanwhile.
func (s *Store) StoreRefresh(ctx context.Context, g Grant) (fresh Grant, ok bool, err error) {
	row, err := s.q.ToolGrantRefresh(ctx, g.Tokens, g.ExpiresAt, g.ID, g.Version)
	if errors.Is(err, pgx.ErrNoRows) {
		return g, false, nil
	}
	if err != nil {
		return g, false, fmt.Errorf("store refreshed tokens: %w", err)
	}
	return grantOf(row), true, nil
}

// ReleaseRefresh ends a claim and keeps the tokens.
func (s *Store) ReleaseRefresh(ctx context.Context, g Grant) error {
	if err := s.q.ToolGrantRelease(ctx, g.ID, g.Version); err != nil {
		return fmt.Errorf("release a claim: %w", err)
	}
	return nil
}

// EndGrant removes a version of a grant, which does not work any more.
func (s *Store) EndGrant(ctx context.Context, g Grant) error {
	if err := s.q.ToolGrantDelete(ctx, g.ID, g.Version); err != nil {
		return fmt.Errorf("remove a grant: %w", err)
	}
	return nil
}

// PutGrant stores a grant in a transaction, in place of an earlier one of its holder, with an id of its
// own. It fails if the server was removed.
func (s *Store) PutGrant(ctx context.Context, tx pgx.Tx, g Grant) error {
	if g.Scopes == nil {
		g.Scopes = []string{}
	}
	_, err := db.New(tx).ToolGrantPut(ctx, db.ToolGrantPutParams{ServerID: g.Server, Holder: g.Holder, Tokens: g.Tokens,
		Issuer: g.Issuer, Scopes: g.Scopes,
		ExpiresAt: g.ExpiresAt})
	if errors.Is(err, pgx.ErrNoRows) {
		return errNoLink()
	}
	if err != nil {
		return fmt.Errorf("store a grant: %w", err)
	}
	return nil
}

// Grants returns the grants of an entry, by holder.
func (s *Store) Grants(ctx context.Context, workspace uuid.UUID, server string) ([]Grant, error) {
	if _, err := s.Find(ctx, workspace, server); err != nil {
		return nil, err
	}
	rows, err := s.q.ToolGrants(ctx, workspace, server)
	if err != nil {
		return nil, fmt.Errorf("list grants: %w", err)
	}
	list := make([]Grant, len(rows))
	for i, r := range rows {
		list[i] = grantOf(r)
	}
	return list, nil
}

// RemoveGrant removes a grant of an entry, or fails with OBJECT_NOT_FOUND.
func (s *Store) RemoveGrant(ctx context.Context, workspace uuid.UUID, server string, id uuid.UUID) error {
	n, err := s.q.ToolGrantRemove(ctx, workspace, server, id)
	if err != nil {
		return fmt.Errorf("remove a grant: %w", err)
	}
	if n == 0 {
		return fault.New(fault.ObjectNotFound, "The tool server %.80q has no connection %s.", server, id)
	}
	return nil
}

// Erase removes the links of a session and the grants of its caller_id.
func (s *Store) Erase(ctx context.Context, tx pgx.Tx, _, session uuid.UUID) error {
	q := db.New(tx)
	if err := q.ToolLinksErase(ctx, &session); err != nil {
		return fmt.Errorf("erase links: %w", err)
	}
	if err := q.ToolGrantsErase(ctx, session); err != nil {
		return fmt.Errorf("erase grants: %w", err)
	}
	return nil
}

// Client returns the sealed registration at an authorization server; nil: there is none.
func (s *Store) Client(ctx context.Context, server uuid.UUID, issuer, redirect string) ([]byte, error) {
	client, err := s.q.ToolClient(ctx, server, issuer, redirect)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return nil, fmt.Errorf("read a registration: %w", err)
	}
	return client, nil
}

// PutClient stores a registration, sealed.
func (s *Store) PutClient(ctx context.Context, server uuid.UUID, issuer, redirect string, client []byte) error {
	if err := s.q.ToolClientPut(ctx, server, issuer, redirect, client); err != nil {
		return fmt.Errorf("store a registration: %w", err)
	}
	return nil
}

// ForgetClient removes registrations that the authorization server does not know any more.
func (s *Store) ForgetClient(ctx context.Context, server uuid.UUID, issuer string) error {
	if err := s.q.ToolClientForget(ctx, server, issuer); err != nil {
		return fmt.Errorf("forget a registration: %w", err)
	}
	return nil
}

func grantOf(r db.ToolGrant) Grant {
	return Grant{ID: r.ID, Server: r.ServerID, Holder: r.Holder, Version: r.Version, Tokens: r.Tokens, Issuer: r.Issuer, Scopes: r.Scopes,
		ExpiresAt: r.ExpiresAt, CreatedAt: r.CreatedAt, UpdatedAt: r.UpdatedAt}
}
