package cli

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/store/vault"
	"github.com/spf13/cobra"
)

func (c *command) secretsCommand() *cobra.Command {
	return groupOf(&cobra.Command{
		Use:   "secrets",
		Short: "manage the secrets of a workspace",
		Example: `  parley secrets set GITHUB_TOKEN --host api.github.com
  parley secrets list
  parley secrets delete GITHUB_TOKEN`,
		Long: `A secret has a name, hosts and a value. The agent sees the name and a placeholder, never the value.
The value is stored encrypted and goes only into requests to the hosts. secret_input of a message
names the secrets that its turn may use.`,
	}, c.secretsSet(), c.secretsList(), c.secretsRemove())
}

func (c *command) secretsSet() *cobra.Command {
	var r vault.Registration
	var noValue bool
	var file string
	cmd := &cobra.Command{
		Use:   "set NAME",
		Short: "create or update a secret from a prompt, stdin or a file",
		Example: `  parley secrets set GITHUB_TOKEN --host api.github.com
  parley secrets set GITHUB_TOKEN < token.txt                   another value for the same hosts
  parley secrets set CRM_KEY --host '*.crm.example' --no-value  the user of the chat provides the value`,
		Long: `With --host the command registers a secret, or replaces the hosts and surfaces of a registered one.
Without --host it gives a registered secret another value.

The value goes into headers of https requests to the hosts, on port 443 unless a host names another.
--in-query, --in-body and --allow-http extend that. A value of several lines, such as a private key,
goes only into request bodies: --in-body.`,
		Args: exactArguments("NAME"),
		PreRunE: func(cmd *cobra.Command, _ []string) error {
			if surfaces := r.InQuery || r.InBody || r.AllowHTTP; len(r.Hosts) == 0 && (surfaces || noValue) {
				return usageError(cmd, "--host is missing.", "--in-query, --in-body, --allow-http and --no-value are for registering a secret, which names its hosts.")
			}
			return nil
		},
		RunE: c.inWorkspace(func(ctx context.Context, a *admin, args []string) error {
			r.Name = args[0]
			if len(r.Hosts) == 0 {
				if err := newNeedsHosts(r.Name, a.Secrets.Known(ctx, a.Workspace.ID, []string{r.Name})); err != nil {
					return err
				}
			}
			if !noValue {
				value, err := c.hiddenInput(ctx, "Value of "+r.Name, file)
				if err != nil {
					return err
				}
				r.Value = value
			}
			made, err := storeSecret(ctx, a, r)
			if err != nil {
				return err
			}
			how := "stored encrypted"
			if !made.HasValue {
				how = "without a value yet"
			}
			c.warnAboutValue(made.Name, r.Value, made.InBody)
			return c.printDone(made, "%s, version %d, is %s. It may go to %s.", made.Name, made.Version, how, strings.Join(made.Hosts, ", "))
		}),
	}
	workspaceFlag(cmd)
	cmd.Flags().StringSliceVar(&r.Hosts, "host", nil, "a host that may receive the value, such as api.github.com, *.example.com or example.com:8443; may be repeated")
	cmd.Flags().BoolVar(&r.InQuery, "in-query", false, "send the value in query strings too")
	cmd.Flags().BoolVar(&r.InBody, "in-body", false, "send the value in request bodies too")
	cmd.Flags().BoolVar(&r.AllowHTTP, "allow-http", false, "send the value without TLS too")
	cmd.Flags().BoolVar(&noValue, "no-value", false, "register only the name and the hosts, and keep a stored value")
	fileFlag(cmd, &file)
	cmd.MarkFlagsMutuallyExclusive("file", "no-value")
	return cmd
}

// commandLine is the author of these changes in the audit table.
const commandLine = "command line"

// storeSecret registers a secret that has hosts, and otherwise sets the value of a registered one.
func storeSecret(ctx context.Context, a *admin, r vault.Registration) (vault.Credential, error) {
	secrets, err := a.OpenVault(ctx)
	if err != nil {
		return vault.Credential{}, err
	}
	if len(r.Hosts) == 0 {
		return secrets.Set(ctx, a.Workspace.ID, r.Name, r.Value, commandLine)
	}
	return secrets.Register(ctx, a.Workspace.ID, r, commandLine)
}

// newNeedsHosts returns the error for a new secret without hosts, before its value is read.
func newNeedsHosts(name string, err error) error {
	if f := fault.From(err); f == nil || f.Code != fault.UnknownSecret {
		return err
	}
	return &problem{Exit: exitUsage, Code: "UNKNOWN_SECRET", What: name + " is not registered.", Why: "A new secret needs the hosts that may receive it.",
		Do: "Name them: parley secrets set " + name + " --host api.example.com"}
}

func (c *command) secretsList() *cobra.Command {
	return withWorkspace(&cobra.Command{
		Use:   "list",
		Short: "list secrets without their values",
		Example: `  parley secrets list
  parley secrets list --workspace sales --json`,
		Args: nothing,
		RunE: c.inWorkspace(func(ctx context.Context, a *admin, _ []string) error {
			list, err := a.Secrets.List(ctx, a.Workspace.ID)
			if err != nil {
				return err
			}
			return c.printList(list, len(list), "The workspace "+a.Workspace.Slug+" has no secrets. Register one: parley secrets set NAME --host HOST",
				[]string{"NAME", "VALUE", "HOSTS", "ALSO IN", "VERSION", "CHANGED", "BY"}, func(i int) []string {
					s := list[i]
					value := "not yet"
					if s.HasValue {
						value = "stored"
					}
					return []string{s.Name, value, strings.Join(s.Hosts, ", "), surfaceList(s), strconv.Itoa(s.Version), formatDay(&s.UpdatedAt),
						s.UpdatedBy}
				})
		}),
	})
}

// surfaceList lists the places of a value besides headers over TLS.
func surfaceList(s vault.Credential) string {
	var list []string
	for _, surface := range []struct {
		on   bool
		name string
	}{{s.InQuery, "query"}, {s.InBody, "body"}, {s.AllowHTTP, "http"}} {
		if surface.on {
			list = append(list, surface.name)
		}
	}
	return strings.Join(list, ", ")
}

func (c *command) secretsRemove() *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use:     "delete NAME",
		Aliases: []string{"rm", "remove"},
		Short:   "delete a secret and its value",
		Example: `  parley secrets delete GITHUB_TOKEN
  parley secrets delete GITHUB_TOKEN --yes      without asking`,
		Args: exactArguments("NAME"),
		RunE: c.inWorkspace(func(ctx context.Context, a *admin, args []string) error {
			if err := a.Secrets.Known(ctx, a.Workspace.ID, args); err != nil {
				return err
			}
			if err := c.requireConsent(yes, fmt.Sprintf("Remove %s and delete its value permanently?", args[0]), "Nothing was removed."); err != nil {
				return err
			}
			if err := a.Secrets.Remove(ctx, a.Workspace.ID, args[0], commandLine); err != nil {
				return err
			}
			return c.printDone(object{"name": args[0]}, "Removed %s.", args[0])
		}),
	}
	workspaceFlag(cmd)
	yesFlag(cmd, &yes)
	return cmd
}
