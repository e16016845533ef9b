package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/parley-server/parley/migrations"
)

func (c *command) migrateCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "migrate",
		Short: "manage the database schema",
		Example: `  parley migrate status
  DATABASE_URL=postgres://… parley migrate up`,
		RunE: runGroup, Args: cobra.ArbitraryArgs,
	}
	up := &cobra.Command{
		Use:   "up",
		Short: "apply missing migrations",
		Example: `  parley migrate up
  DATABASE_URL_FILE=/run/secrets/db parley migrate up`,
		Args: nothing,
		RunE: c.onDatabase(func(ctx context.Context, a *admin, _ []string) error {
			done, err := migrations.Up(ctx, a.DSN.Reveal(), migrations.Options{Log: a.Config.Logger(c.Stderr)})
			if err != nil {
				return err
			}
			return c.printDone(object{"result": done.String()}, "Migrations: %s.", done)
		}),
	}
	status := &cobra.Command{
		Use:   "status",
		Short: "list migrations and exit with 1 if any is missing",
		Example: `  parley migrate status
  parley migrate status --json`,
		Args: nothing,
		RunE: c.onReadDatabase(func(ctx context.Context, a *admin, _ []string) error {
			steps, err := migrations.Status(ctx, a.DSN.Reveal())
			if err != nil {
				return err
			}
			pending := 0
			for _, s := range steps {
				if !s.Applied {
					pending++
				}
			}
			items := make([]map[string]any, len(steps))
			for i, s := range steps {
				items[i] = map[string]any{"source": s.Source, "version": s.Version, "name": s.Name, "applied": s.Applied}
			}
			err = c.printList(items, len(items), "This release has no migrations.", []string{"SOURCE", "VERSION", "NAME", "STATE"},
				func(i int) []string {
					state := "applied"
					switch {
					case !steps[i].Applied:
						state = "missing"
					case !steps[i].AppliedAt.IsZero():
						state = "applied " + formatDay(&steps[i].AppliedAt)
					}
					return []string{steps[i].Source, fmt.Sprint(steps[i].Version), steps[i].Name, state}
				})
			if err == nil && pending > 0 {
				return &problem{Exit: exitFailed, Code: "MIGRATIONS_MISSING", What: fmt.Sprintf("%d migrations are missing.", pending),
					Why: "The database has an older schema than this release.", Do: "Run parley migrate up."}
			}
			return err
		}),
	}
	grant := &cobra.Command{
		Use:   "grant ROLE",
		Short: "allow a role of PostgreSQL to run the service",
		Example: `  parley migrate grant parley_service
  DATABASE_URL=postgres://owner@… parley migrate grant parley_service`,
		Long: `Lets ROLE run the service on tables that belong to the role in DATABASE_URL: it reads and writes them,
and only appends to the log. parley migrate up repeats the grants for new tables.`,
		Args: exactArguments("ROLE"),
		RunE: c.onDatabase(func(ctx context.Context, a *admin, args []string) error {
			if err := migrations.Grant(ctx, a.DSN.Reveal(), args[0]); err != nil {
				return err
			}
			return c.printDone(object{"role": args[0]}, "%s can run the service.", args[0])
		}),
	}
	cmd.AddCommand(up, status, grant)
	return cmd
}
