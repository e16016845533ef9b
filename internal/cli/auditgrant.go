package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/parley-server/parley/migrations"
)

func (c *command) auditGrant() *cobra.Command {
	return &cobra.Command{
		Use:   "grant ROLE",
		Short: "allow a role of PostgreSQL to read the audit views",
		Example: `  parley audit grant anna
  DATABASE_URL=postgres://postgres@… parley audit grant anna`,
		Long: `Makes ROLE a member of the role ` + migrations.Auditor + `, which can read the views of the schema audit and
no table, and makes its transactions read-only. Creates ` + migrations.Auditor + ` if it is missing. If the role in
DATABASE_URL may not do that, the command prints the SQL for an administrator of the database.`,
		Args: exactArguments("ROLE"),
		RunE: c.onDatabase(func(ctx context.Context, a *admin, args []string) error {
			if err := migrations.GrantAudit(ctx, a.DSN.Reveal(), args[0]); err != nil {
				return explainGrant(err, args[0])
			}
			return c.printDone(object{"role": args[0], "audit": true}, "%s can read the audit views.", args[0])
		}),
	}
}

func (c *command) auditRevoke() *cobra.Command {
	return &cobra.Command{
		Use:   "revoke ROLE",
		Short: "remove the audit views from a role of PostgreSQL",
		Example: `  parley audit revoke anna
  DATABASE_URL=postgres://postgres@… parley audit revoke anna`,
		Args: exactArguments("ROLE"),
		RunE: c.onDatabase(func(ctx context.Context, a *admin, args []string) error {
			if err := migrations.RevokeAudit(ctx, a.DSN.Reveal(), args[0]); err != nil {
				return explainGrant(err, args[0])
			}
			return c.printDone(object{"role": args[0], "audit": false}, "%s cannot read the audit views anymore.", args[0])
		}),
	}
}

// explainGrant explains an error of a grant.
func explainGrant(err error, role string) error {
	if denied, ok := errors.AsType[*migrations.NotAllowed](err); ok {
		return &problem{Exit: exitFailed, Code: "DATABASE_ROLE", What: "The role in DATABASE_URL may not do that.", Why: denied.Why(),
			Do: "Run this SQL as an administrator of the database:\n" + denied.SQL}
	}
	if errors.Is(err, migrations.ErrNoRole) {
		return &problem{Exit: exitFailed, Code: "DATABASE_ROLE", What: fmt.Sprintf("PostgreSQL has no role %q.", role),
			Do: fmt.Sprintf("Create it first: CREATE ROLE %q LOGIN", role)}
	}
	return err
}
