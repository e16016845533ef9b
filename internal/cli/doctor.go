package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/parley-server/parley/internal/app"
)

func (c *command) doctorCommand() *cobra.Command {
	var urls []string
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "check whether a server can work here",
		Long: `Prints a line for each check, with what to do: settings, database, pooler (in front of the database),
rights (of the database's role), durability, listen (notifications of PostgreSQL), migrations, vault
(the master keys), clock, disk, heads (the places of PARLEY_AUDIT_HEADS), sandbox, model and embeddings.
It uses them as the server would, and changes nothing. The checks model and embeddings send one short
request each, if they have a provider.

--url also checks a running server through its public address: whether it is ready, and whether a proxy
buffers its streams. Give it several times, from the outside to the server, to find that proxy.`,
		Example: `  parley doctor
  parley doctor --url https://parley.example
  parley doctor --url https://parley.example --url http://10.0.0.5:8080`,
		Args: nothing,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := c.loadSettings(cmd)
			if err != nil {
				return err
			}
			ctx, stop := c.interruptContext(cmd.Context())
			defer stop()
			findings, failed := []app.Finding{}, 0
			for f := range app.Doctor(ctx, cfg, app.DoctorOptions{DevDir: c.devDir(), URLs: urls}) {
				findings = append(findings, f)
				if f.Grade == app.GradeFail {
					failed++
				}
				if !c.json {
					c.printFinding(f)
				}
			}
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if c.json {
				if err := c.printData(findings); err != nil {
					return err
				}
			}
			if failed > 0 {
				return exitError(exitFailed)
			}
			return nil
		},
	}
	cmd.Flags().StringArrayVar(&urls, "url", nil, "also check the server behind this address")
	return cmd
}

// printFinding prints the line of a check, and what to do below it.
func (c *command) printFinding(f app.Finding) {
	indent := "\n" + strings.Repeat(" ", 18)
	text := strings.ReplaceAll(plainLines(f.Result), "\n", indent)
	if f.Remedy != "" {
		text += indent + strings.ReplaceAll(plainLines(f.Remedy), "\n", indent)
	}
	fmt.Fprintf(c.Stdout, "%-5s %-11s %s\n", f.Grade, f.Check, text)
}
