package account

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/parley-server/parley/db"
	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/replan"
	"github.com/parley-server/parley/internal/store/apikey"
)

// Flow is a sign-in at the identity provider that has begun.
type Flow struct {
	State    string
	Nonce    string
	Verifier string // of PKCE
	Next     string // page to open afterwards
}

// BeginFlow stores a new flow.
func (s *Store) BeginFlow(ctx context.Context, next string) (Flow, error) {
	f := Flow{State: token(), Nonce: token(), Verifier: token(), Next: next}
	return f, wrap("store a sign-in", s.q.OIDCStateInsert(ctx, hashToken(f.State), f.Nonce, f.Verifier, next))
}

// TakeFlow returns the flow of a state, once.
func (s *Store) TakeFlow(ctx context.Context, state string) (Flow, error) {
	row, err := s.q.OIDCStateTake(ctx, hashToken(state))
	if isMissing(err) {
		return Flow{}, badLink("This sign-in has been used or is too old. Begin again.")
	}
	return Flow{state, row.Nonce, row.Verifier, row.Next}, wrap("find a sign-in", err)
}

// Identity is what the identity provider asserts.
type Identity struct {
	Subject  string // issuer and subject
	Email    string
	Verified bool // the address
	Name     string
	Admin    bool // by a group
	Mapped   bool // groups decide about Admin and Roles; else they stay as they are
	Roles    map[uuid.UUID]apikey.Role
}

// SignInWith returns the user of an identity, whom it creates or finds by the verified address, and
// brings the roles in line with the groups.
func (s *Store) SignInWith(ctx context.Context, id Identity) (User, error) {
	var u User
	err := replan.InTx(ctx, s.pool, func(tx pgx.Tx) error {
		q := s.q.WithTx(tx)
		if err := q.UsersLock(ctx); err != nil {
			return err
		}
		row, err := q.UserBySubject(ctx, id.Subject)
		if isMissing(err) {
			row, err = s.adopt(ctx, q, id)
		}
		if err != nil {
			return err
		}
		if row.DisabledAt != nil {
			return fault.New(fault.InsufficientScope, "This user is disabled. An administrator can enable it.")
		}
		if id.Mapped {
			if row, err = alignRoles(ctx, q, row, id); err != nil {
				return err
			}
		}
		u = userOf(row)
		return nil
	})
	return u, err
}

// adopt connects an identity to the user with its address, or creates one.
func (s *Store) adopt(ctx context.Context, q *db.Queries, id Identity) (db.User, error) {
	id.Email = strings.TrimSpace(id.Email)
	if vs := emailViolations(id.Email); len(vs) > 0 || !id.Verified {
		return db.User{}, fault.New(fault.InsufficientScope, "The identity provider asserts no verified email address. Ask its administrator to add one.")
	}
	row, err := q.UserByEmail(ctx, id.Email)
	switch {
	case isMissing(err):
		if len(nameViolations(id.Name)) > 0 {
			id.Name = ""
		}
		return q.UserInsert(ctx, db.UserInsertParams{ID: newID("mbr_"), Email: id.Email, Name: id.Name, OidcSubject: &id.Subject})
	case err != nil:
		return db.User{}, err
	case row.OidcSubject != nil:
		return db.User{}, fault.New(fault.InsufficientScope, "The address %s belongs to another identity. Ask an administrator.", id.Email)
	}
	return q.UserUpdate(ctx, db.UserUpdateParams{ID: row.ID, OidcSubject: &id.Subject})
}

// alignRoles sets what the groups decide. Roles that an owner gave by hand stay in workspaces that no
// group names.
func alignRoles(ctx context.Context, q *db.Queries, row db.User, id Identity) (db.User, error) {
	for _, ws := range slices.SortedFunc(maps.Keys(id.Roles), func(a, b uuid.UUID) int { return strings.Compare(a.String(), b.String()) }) {
		if err := q.MemberPut(ctx, ws, row.ID, string(id.Roles[ws]), true); err != nil {
			return row, err
		}
	}
	kept := slices.Collect(maps.Keys(id.Roles))
	if kept == nil {
		kept = []uuid.UUID{}
	}
	if err := q.MemberDeleteFromOIDC(ctx, row.ID, kept); err != nil {
		return row, err
	}
	if row.IsAdmin == id.Admin {
		return row, nil
	}
	if !id.Admin && row.PasswordHash != nil {
		return row, nil // made an administrator by hand
	}
	return q.UserUpdate(ctx, db.UserUpdateParams{ID: row.ID, IsAdmin: &id.Admin})
}
