package account

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/parley-server/parley/db"
	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/replan"
	"github.com/parley-server/parley/internal/store/apikey"
)

// Member is a user of a workspace.
type Member struct {
	User
	Role     apikey.Role
	FromOIDC bool // the identity provider's groups decide
	Since    time.Time
}

// Memberships lists the workspaces of a user, by slug.
func (s *Store) Memberships(ctx context.Context, user string) ([]Membership, error) {
	rows, err := s.q.MemberRoles(ctx, user)
	list := make([]Membership, len(rows))
	for i, r := range rows {
		list[i] = Membership{r.ID, r.Slug, r.Name, apikey.Role(r.Role)}
	}
	return list, wrapError("list memberships", err)
}

// Members lists the members of a workspace by address, at most 1000.
func (s *Store) Members(ctx context.Context, workspace uuid.UUID) ([]Member, error) {
	rows, err := s.q.MembersList(ctx, workspace)
	list := make([]Member, len(rows))
	for i, r := range rows {
		list[i] = Member{userOf(r.User), apikey.Role(r.Role), r.FromOidc, r.Since}
	}
	return list, wrapError("list members", err)
}

// SetRole makes a user a member, or changes the role. The last owner of a workspace keeps it.
func (s *Store) SetRole(ctx context.Context, workspace uuid.UUID, user string, role apikey.Role) error {
	if !role.Known() {
		return fault.Invalid(fault.Violation{Param: "/role", Rule: "enum", Expected: apikey.Roles,
			Message: "The roles are owner, editor, approver and viewer."})
	}
	return wrapError("set a role", replan.InTx(ctx, s.pool, func(tx pgx.Tx) error {
		q := s.q.WithTx(tx)
		if role != apikey.Owner {
			if err := keepOwner(ctx, q, workspace, user); err != nil {
				return err
			}
		}
		return q.MemberPut(ctx, workspace, user, string(role), false)
	}))
}

// Remove ends a membership. The last owner of a workspace stays.
func (s *Store) Remove(ctx context.Context, workspace uuid.UUID, user string) error {
	return wrapError("remove a member", replan.InTx(ctx, s.pool, func(tx pgx.Tx) error {
		q := s.q.WithTx(tx)
		if err := keepOwner(ctx, q, workspace, user); err != nil {
			return err
		}
		n, err := q.MemberDelete(ctx, workspace, user)
		if err == nil && n == 0 {
			return fault.Invalid(fault.Violation{Param: "/user", Rule: "exists", Message: "This user is not a member of the workspace."})
		}
		return err
	}))
}

// keepOwner fails if the user is the last owner of a workspace.
func keepOwner(ctx context.Context, q *db.Queries, workspace uuid.UUID, user string) error {
	owners, err := q.MemberOwnersLock(ctx, workspace)
	if err == nil && len(owners) == 1 && owners[0] == user {
		return fault.Invalid(fault.Violation{Param: "/role", Rule: "last_owner",
			Message: "This is the only owner of the workspace. Make another member an owner first."})
	}
	return err
}
