// Package vault owns secrets: the master keys, the data sealed under them, and the credentials of
// workspaces. It promises that a value is in the database only as an envelope that opens for its
// own workspace, name, version, hosts and surfaces. It never prints, logs or marshals a value, and
// never decides which callers may use one.
package vault

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-server/parley/db"
	"github.com/parley-server/parley/internal/replan"
)

// Store stores credentials. The audit table contains the actor `by`: "key:" and the id of an API
// key, or "command line".
type Store struct {
	pool *pgxpool.Pool
	q    *db.Queries
	keys *Keyring
}

// New returns a store. Without keys, nil, it only lists and removes.
func New(pool *pgxpool.Pool, keys *Keyring) *Store {
	return &Store{pool, db.New(replan.Pool{Pool: pool}), keys}
}

// Keyring returns the keys, for sealing or signing other data.
func (s *Store) Keyring() *Keyring { return s.keys }

// Register creates or replaces a credential as a whole: its hosts and surfaces, and its value if
// one is given. A kept value is sealed again for them.
func (s *Store) Register(ctx context.Context, workspace uuid.UUID, r Registration, by string) (Credential, error) {
	hosts, vs := r.checkRegistration()
	if err := refusedValue(vs); err != nil {
		return Credential{}, err
	}
	return s.changeCredential(ctx, func(q *db.Queries) (db.Credential, string, error) {
		row, err := q.CredentialLock(ctx, workspace, r.Name)
		if err != nil {
			return row, "", fmt.Errorf("lock credential: %w", err)
		}
		value, what := r.Value, setAction(row)
		if r.Value.Reveal() == nil {
			what = "registered"
			if value, err = s.openValue(row); err != nil {
				return row, "", err
			}
		}
		row.AllowedHosts, row.InQuery, row.InBody, row.AllowHTTP = hosts, r.InQuery, r.InBody, r.AllowHTTP
		row, err = s.putVersion(ctx, q, row, value, by)
		return row, what, err
	}, by)
}

// Provide sets the value of a registered credential inside the caller's transaction, for a value
// that a conversation has requested, or fails with UNKNOWN_SECRET.
func (s *Store) Provide(ctx context.Context, tx pgx.Tx, workspace uuid.UUID, name string, value Value, by string) error {
	if err := refusedValue(CheckValue(value)); err != nil {
		return err
	}
	q := db.New(tx)
	row, err := findSecret(ctx, q, workspace, name)
	if err != nil {
		return err
	}
	if row, err = s.putVersion(ctx, q, row, value, by); err != nil {
		return err
	}
	return recordAudit(ctx, q, row, "provided", by)
}

// Remove deletes a credential, or fails with UNKNOWN_SECRET.
func (s *Store) Remove(ctx context.Context, workspace uuid.UUID, name, by string) error {
	_, err := s.changeCredential(ctx, func(q *db.Queries) (db.Credential, string, error) {
		row, err := findSecret(ctx, q, workspace, name)
		if err != nil {
			return row, "", err
		}
		if row, err = q.CredentialRemove(ctx, workspace, name, by); err != nil {
			return row, "", fmt.Errorf("remove credential: %w", err)
		}
		return row, "removed", nil
	}, by)
	return err
}

// changeCredential runs one change and records it in the audit table.
func (s *Store) changeCredential(
	ctx context.Context, work func(*db.Queries) (db.Credential, string, error), by string,
) (Credential, error) {
	var row db.Credential
	err := replan.InTx(ctx, s.pool, func(tx pgx.Tx) error {
		q := db.New(tx)
		var what string
		var err error
		if row, what, err = work(q); err != nil {
			return err
		}
		return recordAudit(ctx, q, row, what, by)
	})
	if err != nil {
		return Credential{}, err
	}
	return newCredential(row), nil
}

// findSecret locks a credential, or fails with UNKNOWN_SECRET.
func findSecret(ctx context.Context, q *db.Queries, workspace uuid.UUID, name string) (db.Credential, error) {
	if _, err := chooseCredential(ctx, q, workspace, []string{name}); err != nil {
		return db.Credential{}, err
	}
	row, err := q.CredentialFind(ctx, workspace, name)
	if errors.Is(err, pgx.ErrNoRows) { // removed a moment ago
		return row, unknownCredentials(nil, []string{name})
	}
	if err != nil {
		return row, fmt.Errorf("find credential: %w", err)
	}
	return row, nil
}

// putVersion writes a new version of a locked row. A zero value removes the row's value.
func (s *Store) putVersion(ctx context.Context, q *db.Queries, row db.Credential, value Value, by string) (db.Credential, error) {
	row.Version++
	p := db.CredentialPutParams{
		WorkspaceID: row.WorkspaceID, Name: row.Name, Version: row.Version, AllowedHosts: row.AllowedHosts,
		InQuery: row.InQuery, InBody: row.InBody, AllowHTTP: row.AllowHTTP, UpdatedBy: by,
	}
	if plain := value.Reveal(); plain != nil {
		var err error
		if p.Value, err = s.keys.Seal(plain, purpose, boundFields(row)...); err != nil {
			return row, fmt.Errorf("seal credential: %w", err)
		}
	}
	row, err := q.CredentialPut(ctx, p)
	if err != nil {
		return row, fmt.Errorf("put credential: %w", err)
	}
	return row, nil
}

// setAction returns the audit action for setting a credential's value.
func setAction(row db.Credential) string {
	if row.Value == nil {
		return "set"
	}
	return "rotated"
}

func recordAudit(ctx context.Context, q *db.Queries, row db.Credential, what, by string) error {
	err := q.CredentialNote(ctx, db.CredentialNoteParams{
		WorkspaceID: row.WorkspaceID, Name: row.Name, Version: row.Version, What: what, AllowedHosts: row.AllowedHosts, By: by,
	})
	if err != nil {
		return fmt.Errorf("note what happened to a credential: %w", err)
	}
	return nil
}
