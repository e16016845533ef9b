package account

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"slices"

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
	f := Flow{State: newSecret(), Nonce: newSecret(), Verifier: newSecret(), Next: next}
	return f, wrapError("store a sign-in", s.q.OIDCStateInsert(ctx, hashToken(f.State), f.Nonce, f.Verifier, next))
}

// TakeFlow returns the flow of a state, once.
func (s *Store) TakeFlow(ctx context.Context, state string) (Flow, error) {
	row, err := s.q.OIDCStateTake(ctx, hashToken(state))
	if isMissing(err) {
		return Flow{}, badLink("This sign-in has been used or is too old. Begin again.")
	}
	return Flow{state, row.Nonce, row.Verifier, row.Next}, wrapError("find a sign-in", err)
}

// Identity is a user as the identity provider and the rules of its groups describe them.
type Identity struct {
	Subject      string // issuer and subject
	Email        string
	Verified     bool // the address
	Unverified   bool // addresses that are not verified create users, too
	Name         string
	DecidesAdmin bool // groups decide which users are administrators
	Admin        bool // by a group
	Roles        map[uuid.UUID]apikey.Role
}

// ErrNoRole is returned by SignInWith for a user without a role in any workspace.
var ErrNoRole = errors.New("the user has no role")

// SignInWith returns the user of an identity, created or found by the verified address, and aligns
// the roles with the groups. A user without any role gets ErrNoRole and is not created; roles that
// the groups do not give any more are removed nevertheless.
func (s *Store) SignInWith(ctx context.Context, id Identity) (User, error) {
	var row db.User
	var roles int
	err := replan.InTx(ctx, s.pool, func(tx pgx.Tx) error {
		q := s.q.WithTx(tx)
		if err := q.UsersLock(ctx); err != nil {
			return err
		}
		var err error
		if row, err = q.UserBySubject(ctx, id.Subject); isMissing(err) {
			row, err = adoptIdentity(ctx, q, id)
		}
		if err != nil {
			return err
		}
		if row.DisabledAt != nil {
			return refusedError("This user is disabled. An administrator can enable it.")
		}
		if row, err = alignRoles(ctx, q, row, id); err != nil {
			return err
		}
		list, err := q.MemberRoles(ctx, row.ID)
		roles = len(list)
		return err
	})
	if fault.From(err) != nil || errors.Is(err, ErrNoRole) {
		return User{}, err
	}
	if err == nil && roles == 0 && !row.IsAdmin {
		return User{}, ErrNoRole
	}
	return userOf(row), wrapError("sign in with an identity", err)
}

func refusedError(format string, args ...any) error {
	return fault.New(fault.InsufficientScope, format, args...)
}

// adoptIdentity connects an identity to the user with its address, or creates one.
func adoptIdentity(ctx context.Context, q *db.Queries, id Identity) (db.User, error) {
	if len(emailViolations(id.Email)) > 0 {
		return db.User{}, refusedError("The identity provider sends no email address. Ask its administrator to add one.")
	}
	row, err := q.UserByEmail(ctx, id.Email)
	switch {
	case err != nil && !isMissing(err):
		return db.User{}, err
	case !id.Verified && (err == nil || !id.Unverified):
		return db.User{}, refusedError("The identity provider has not verified the address %s. Verify it there, then sign in again.", id.Email)
	case isMissing(err):
		return createIdentity(ctx, q, id)
	case row.OidcSubject != nil:
		return db.User{}, refusedError("The address %s belongs to another identity. Ask an administrator.", id.Email)
	}
	return q.UserUpdate(ctx, db.UserUpdateParams{ID: row.ID, OidcSubject: &id.Subject})
}

func createIdentity(ctx context.Context, q *db.Queries, id Identity) (db.User, error) {
	if len(id.Roles) == 0 && !id.Admin {
		return db.User{}, ErrNoRole
	}
	if len(nameViolations(id.Name)) > 0 {
		id.Name = ""
	}
	row, err := q.UserInsert(ctx, db.UserInsertParams{ID: newID("mbr_"), Email: id.Email, Name: id.Name, OidcSubject: &id.Subject})
	if isMissing(err) {
		return db.User{}, emailInUse(id.Email)
	}
	return row, err
}

// alignRoles sets the roles that the groups give and removes those that they gave before. Roles
// that an owner gave stay in workspaces that no group of the user names.
func alignRoles(ctx context.Context, q *db.Queries, row db.User, id Identity) (db.User, error) {
	kept := slices.SortedFunc(maps.Keys(id.Roles), func(a, b uuid.UUID) int { return bytes.Compare(a[:], b[:]) })
	for _, ws := range kept {
		if err := q.MemberPut(ctx, ws, row.ID, string(id.Roles[ws]), true); err != nil {
			return row, err
		}
	}
	if err := q.MemberDeleteFromOIDC(ctx, row.ID, append([]uuid.UUID{}, kept...)); err != nil {
		return row, err
	}
	if !id.DecidesAdmin || row.IsAdmin == id.Admin {
		return row, nil
	}
	if !id.Admin {
		err := keepAdmin(ctx, q, row.ID)
		if fault.From(err) != nil {
			return row, nil // the last one stays
		}
		if err != nil {
			return row, err
		}
	}
	return q.UserUpdate(ctx, db.UserUpdateParams{ID: row.ID, IsAdmin: &id.Admin})
}
