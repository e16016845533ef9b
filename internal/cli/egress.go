package cli

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/parley-server/parley/client"
	"github.com/parley-server/parley/internal/store/vault"
)

func (c *command) egressCommand() *cobra.Command {
	return groupOf(&cobra.Command{
		Use:   "egress",
		Short: "manage the hosts that tools may reach",
		Example: `  parley egress create api.example.com
  parley egress list
  parley egress log --session 0192a3b4-5c6d-7e8f-9a0b-1c2d3e4f5a6b`,
	}, c.egressList(), c.egressAllow(), c.egressRemove(), c.egressPublic(), c.egressLog())
}

// policyShown is the egress policy in --json.
type policyShown struct {
	Public bool     `json:"public"`
	Hosts  []string `json:"hosts"`
}

func (c *command) egressList() *cobra.Command {
	return withWorkspace(&cobra.Command{
		Use:   "list",
		Short: "list the hosts that tools may reach",
		Example: `  parley egress list
  parley egress list --workspace sales --json`,
		Args: nothing,
		RunE: c.administer(func(ctx context.Context, a *administration, _ []string) error {
			p, err := a.Egress(ctx)
			if err != nil {
				return err
			}
			if c.json {
				return c.printData(policyShown{p.Public, append([]string{}, p.Hosts...)})
			}
			if p.Public {
				fmt.Fprintln(c.Stderr, "Tools may reach every public host; parley egress public off limits them to the list.")
			}
			return c.printList(p.Hosts, len(p.Hosts), "The list is empty. Add a host: parley egress create api.example.com",
				[]string{"HOST"}, func(i int) []string { return []string{p.Hosts[i]} })
		}),
	})
}

func (c *command) egressAllow() *cobra.Command {
	return withWorkspace(&cobra.Command{
		Use:     "create HOST",
		Aliases: []string{"allow"},
		Short:   "add a host, effective from the next turn",
		Example: `  parley egress create api.example.com
  parley egress create '*.example.com'
  parley egress create registry.npmjs.org --workspace sales`,
		Args: exactArguments("HOST"),
		RunE: c.administer(func(ctx context.Context, a *administration, args []string) error {
			host, wrong := vault.Host(args[0])
			if wrong != "" {
				return &problem{Exit: exitUsage, Code: "REFUSED", What: fmt.Sprintf("%.80q is not a host: %s", args[0], wrong),
					Do: "Correct the command and run it again."}
			}
			err := changeEgress(ctx, a, func(p *client.Egress) { p.Hosts = append(p.Hosts, host) })
			if err != nil {
				return err
			}
			return c.printDone(object{"host": host}, "Tools may reach %s.", host)
		}),
	})
}

func (c *command) egressRemove() *cobra.Command {
	return withWorkspace(&cobra.Command{
		Use:     "delete HOST",
		Aliases: []string{"rm"},
		Short:   "remove a host",
		Example: "  parley egress delete api.example.com\n  parley egress delete '*.example.com' --workspace sales",
		Args:    exactArguments("HOST"),
		RunE: c.administer(func(ctx context.Context, a *administration, args []string) error {
			host, _ := vault.Host(args[0])
			removed := false
			err := changeEgress(ctx, a, func(p *client.Egress) {
				kept := slices.DeleteFunc(slices.Clone(p.Hosts), func(h string) bool { return h == host })
				removed, p.Hosts = len(kept) < len(p.Hosts), kept
			})
			if err != nil {
				return err
			}
			if !removed {
				return &problem{Exit: exitUsage, Code: "REFUSED", What: "The list has no such host.", Do: "See parley egress list."}
			}
			return c.printDone(object{"host": args[0]}, "Removed %s.", args[0])
		}),
	})
}

func (c *command) egressPublic() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "public on|off",
		Short: "allow all public hosts, or only the listed ones",
		Long: "Lets tools reach every public host, or only the hosts on the list. Secrets go to their own hosts either way. " +
			"While this is on, the agent can send content of the conversation to any public host.",
		Example: "  parley egress public on\n  parley egress public off --workspace sales",
		Args:    exactArguments("on|off"),
		RunE: c.administer(func(ctx context.Context, a *administration, args []string) error {
			if err := changeEgress(ctx, a, func(p *client.Egress) { p.Public = args[0] == "on" }); err != nil {
				return err
			}
			reach := map[string]string{"on": "every public host", "off": "only the hosts on the list"}[args[0]]
			return c.printDone(object{"public": args[0] == "on"}, "Tools may reach %s.", reach)
		}),
	}
	workspaceFlag(cmd)
	cmd.PreRunE = func(_ *cobra.Command, args []string) error {
		if args[0] != "on" && args[0] != "off" {
			return usageError(cmd, fmt.Sprintf("%q is neither on nor off.", args[0]), "")
		}
		return nil
	}
	return cmd
}

// changeEgress changes the policy as it is, unless another administrator changes it at the same
// time.
func changeEgress(ctx context.Context, a *administration, change func(*client.Egress)) error {
	p, err := a.Egress(ctx)
	if err != nil {
		return err
	}
	was := client.Egress{Public: p.Public, Hosts: slices.Clone(p.Hosts)}
	if change(&p); p.Public == was.Public && slices.Equal(p.Hosts, was.Hosts) {
		return nil
	}
	_, err = a.PutEgress(ctx, p, p.ETag)
	return err
}

func (c *command) egressLog() *cobra.Command {
	var session string
	var limit int
	cmd := &cobra.Command{
		Use:   "log",
		Short: "list requests of tools with the secrets they carried",
		Example: `  parley egress log
  parley egress log --limit 200 --json
  parley egress log --session 0192a3b4-5c6d-7e8f-9a0b-1c2d3e4f5a6b`,
		Args: nothing,
	}
	cmd.PreRunE = func(*cobra.Command, []string) error {
		if err := checkLimit(cmd, limit, 1000); err != nil {
			return err
		}
		if session != "" && uuid.Validate(session) != nil {
			return usageError(cmd, fmt.Sprintf("%q is not a session.", session), "It takes an id, as parley sessions list shows it.")
		}
		return nil
	}
	cmd.RunE = c.administer(func(ctx context.Context, a *administration, _ []string) error {
		shown, err := a.EgressRequests(ctx, session, limit)
		if err != nil {
			return err
		}
		return c.printList(shown, len(shown), "No recorded requests.",
			[]string{"AT", "SESSION", "REQUEST", "SECRETS", "DECISION", "TIMES", "STATUS"}, func(i int) []string { return egressRow(shown[i]) })
	})
	workspaceFlag(cmd)
	cmd.Flags().StringVar(&session, "session", "", "only those of this session")
	cmd.Flags().IntVar(&limit, "limit", 50, "how many, 1 to 1000")
	return cmd
}

// egressRow returns the columns of a request. A check of a tool server has no session.
func egressRow(r client.EgressRequest) []string {
	session, secrets, status := r.SessionID, "none", "none"
	if session == uuid.Nil.String() {
		session = "none"
	}
	if len(r.Credentials) > 0 {
		secrets = strings.Join(r.Credentials, " ")
	}
	if r.Status != nil {
		status = strconv.Itoa(*r.Status)
	}
	return []string{formatDay(&r.At), session, r.Method + " " + shortText(r.URL, 80), secrets, r.Decision, strconv.Itoa(r.Times), status}
}
