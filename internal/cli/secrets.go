package cli

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/parley-server/parley/client"
	"github.com/parley-server/parley/internal/store/toolset"
	"github.com/parley-server/parley/internal/store/vault"
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
	var r client.CredentialChange
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
				return usageError(cmd, "--host is missing.",
					"--in-query, --in-body, --allow-http and --no-value are for registering a secret, which names its hosts.")
			}
			return nil
		},
		RunE: c.administer(func(ctx context.Context, a *administration, args []string) error {
			r.Name = args[0]
			if len(r.Hosts) == 0 {
				var err error
				if r, err = registered(ctx, a, r.Name, "A new secret needs the hosts that may receive it: parley secrets set "+r.Name+
					" --host api.example.com"); err != nil {
					return err
				}
			}
			if !noValue {
				value, err := c.hiddenInput(ctx, "Value of "+r.Name, file)
				if err != nil {
					return err
				}
				if vs := vault.CheckValue(value); len(vs) > 0 { // JSON would change bytes that are not text
					return &problem{Exit: exitUsage, Code: "REFUSED", What: vs[0].Message, Do: "Correct the command and run it again."}
				}
				r.Value = string(value.Reveal())
			}
			made, err := a.PutCredential(ctx, r)
			if err != nil {
				return err
			}
			how := "stored encrypted"
			if !made.HasValue {
				how = "without a value yet"
			}
			c.warnAboutValue(made.Name, vault.NewValue([]byte(r.Value)), made.InBody)
			return c.printDone(made, "%s, version %d, is %s. It may go to %s.", made.Name, made.Version, how, strings.Join(made.Hosts, ", "))
		}),
	}
	workspaceFlag(cmd)
	cmd.Flags().StringSliceVar(&r.Hosts, "host", nil,
		"a host that may receive the value, such as api.github.com, *.example.com or example.com:8443; may be repeated")
	cmd.Flags().BoolVar(&r.InQuery, "in-query", false, "send the value in query strings too")
	cmd.Flags().BoolVar(&r.InBody, "in-body", false, "send the value in request bodies too")
	cmd.Flags().BoolVar(&r.AllowHTTP, "allow-http", false, "send the value without TLS too")
	cmd.Flags().BoolVar(&noValue, "no-value", false, "register only the name and the hosts, and keep a stored value")
	fileFlag(cmd, &file)
	cmd.MarkFlagsMutuallyExclusive("file", "no-value")
	return cmd
}

// registered returns what replaces a registered secret without a change. remedy is for a name that is
// not registered.
func registered(ctx context.Context, a *administration, name, remedy string) (client.CredentialChange, error) {
	list, err := a.Credentials(ctx)
	if err != nil {
		return client.CredentialChange{}, err
	}
	p := &problem{Exit: exitUsage, Code: "UNKNOWN_SECRET", What: name + " is not registered.", Why: "The workspace has no secrets.",
		Do: remedy}
	for i, s := range list {
		switch {
		case s.Name == name:
			return client.CredentialChange{Name: name, Hosts: s.Hosts, InQuery: s.InQuery, InBody: s.InBody, AllowHTTP: s.AllowHTTP}, nil
		case i == 0:
			p.Why = "Registered are " + s.Name + "."
		default:
			p.Why = strings.TrimSuffix(p.Why, ".") + ", " + s.Name + "."
		}
	}
	return client.CredentialChange{}, p
}

func (c *command) secretsList() *cobra.Command {
	return withWorkspace(&cobra.Command{
		Use:   "list",
		Short: "list secrets without their values",
		Example: `  parley secrets list
  parley secrets list --workspace sales --json`,
		Args: nothing,
		RunE: c.administer(func(ctx context.Context, a *administration, _ []string) error {
			list, err := a.Credentials(ctx)
			if err != nil {
				return err
			}
			return c.printList(list, len(list), "The workspace "+a.slug+" has no secrets. Register one: parley secrets set NAME --host HOST",
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
func surfaceList(s client.Credential) string {
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
		RunE: c.administer(func(ctx context.Context, a *administration, args []string) error {
			if _, err := registered(ctx, a, args[0], "See parley secrets list."); err != nil {
				return err
			}
			users, err := usersOfSecret(ctx, a, args[0])
			if err != nil {
				return err
			}
			used := ""
			if len(users) > 0 {
				used = " " + args[0] + " is used by " + strings.Join(users, ", ") + "."
			}
			if err := c.requireConsent(yes, fmt.Sprintf("Remove %s and delete its value permanently?%s", args[0], used),
				"Nothing was removed."+used); err != nil {
				return err
			}
			if err := a.DeleteCredential(ctx, args[0]); err != nil {
				return err
			}
			return c.printDone(object{"name": args[0]}, "Removed %s.", args[0])
		}),
	}
	workspaceFlag(cmd)
	yesFlag(cmd, &yes)
	return cmd
}

// usersOfSecret lists the providers of models and the tool servers that name a secret.
func usersOfSecret(ctx context.Context, a *administration, name string) (users []string, err error) {
	providers, err := a.ModelProviders(ctx)
	if err != nil {
		return nil, err
	}
	for _, p := range providers {
		if orEmpty(p.Credential) == name {
			users = append(users, "the model provider "+p.Name)
		}
	}
	servers, err := a.ToolServers(ctx)
	if err != nil {
		return nil, err
	}
	for _, s := range servers {
		if s.Secret == name || slices.Contains(toolset.Server{Headers: s.Headers}.Secrets(), name) {
			users = append(users, "the tool server "+s.Name)
		}
	}
	return users, nil
}
