package cli

import "github.com/spf13/cobra"

func (c *command) auditCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "audit",
		Short: "check the log for changes, and manage access to the audit views",
		Example: `  parley audit grant anna
  psql "$DATABASE_URL" -c '\dv+ audit.*'`,
		RunE: runGroup, Args: cobra.ArbitraryArgs,
	}
	cmd.AddCommand(c.auditGrant(), c.auditRevoke(), c.auditVerify(), c.auditHead(), c.auditPublicKey())
	return cmd
}
