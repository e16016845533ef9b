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
	holder, err := s.q.ToolHolder(ctx, turn)
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

// ErrNoGrant is the result of a refresh of a grant that was removed.
var ErrNoGrant = errors.New("toolset: there is no grant")

// refreshPatience lets a transaction wait for an authorization server, and for another replica that
// does.
const refreshPatience = `SELECT set_config('idle_in_transaction_session_timeout', '30s', true), set_config('lock_timeout', '30s', true), set_config('statement_timeout', '30s', true)`

// RefreshGrant locks a grant, so that one replica refreshes it, and stores what renew returns: other
// tokens, the same ones, or none, which removes the grant. renew may make a request and runs once.
func (s *Store) RefreshGrant(ctx context.Context, server uuid.UUID, holder string, renew func(context.Context, Grant) (Grant, error)) (fresh Grant, err error) {
	err = pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, refreshPatience); err != nil {
			return fmt.Errorf("allow a refresh its time: %w", err)
		}
		q := db.New(tx)
		row, err := q.ToolGrantLock(ctx, server, holder)
		if errors.Is(err, pgx.ErrNoRows) {
			return ErrNoGrant
		}
		if err != nil {
			return fmt.Errorf("lock a grant: %w", err)
		}
		held := grantOf(row)
		if fresh, err = renew(ctx, held); err != nil {
			return err
		}
		switch {
		case fresh.Tokens == nil:
			_, err = q.ToolGrantDelete(ctx, server, holder, held.Version)
		case fresh.Version == held.Version && string(fresh.Tokens) != string(held.Tokens):
			fresh, err = putGrant(ctx, q, fresh)
		}
		return err
	})
	if err == nil && fresh.Tokens == nil {
		err = ErrNoGrant
	}
	return fresh, err
}

// PutGrant stores a grant in a transaction, in place of an earlier one of its holder.
func (s *Store) PutGrant(ctx context.Context, tx pgx.Tx, g Grant) error {
	_, err := putGrant(ctx, db.New(tx), g)
	return err
}

func putGrant(ctx context.Context, q *db.Queries, g Grant) (Grant, error) {
	if g.Scopes == nil {
		g.Scopes = []string{}
	}
	row, err := q.ToolGrantPut(ctx, db.ToolGrantPutParams{ServerID: g.Server, Holder: g.Holder, Tokens: g.Tokens, Issuer: g.Issuer, Scopes: g.Scopes, ExpiresAt: g.ExpiresAt})
	if err != nil {
		return g, fmt.Errorf("store a grant: %w", err)
	}
	return grantOf(row), nil
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
