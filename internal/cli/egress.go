package cli

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"
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
		RunE: c.inWorkspace(func(ctx context.Context, a *admin, _ []string) error {
			p, err := a.Runner.Policy(ctx, a.Workspace.ID)
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
		RunE: c.inWorkspace(func(ctx context.Context, a *admin, args []string) error {
			host, err := a.Runner.Allow(ctx, a.Workspace.ID, args[0])
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
		RunE: c.inWorkspace(func(ctx context.Context, a *admin, args []string) error {
			removed, err := a.Runner.Remove(ctx, a.Workspace.ID, args[0])
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
		RunE: c.inWorkspace(func(ctx context.Context, a *admin, args []string) error {
			if err := a.Runner.SetPublic(ctx, a.Workspace.ID, args[0] == "on"); err != nil {
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

// requestShown is a request of a tool in --json.
type requestShown struct {
	ID          int64     `json:"request_id"`
	SessionID   uuid.UUID `json:"session_id"`
	TurnID      uuid.UUID `json:"turn_id"`
	ToolUseID   string    `json:"tool_use_id"`
	At          time.Time `json:"at"`
	Method      string    `json:"method"`
	URL         string    `json:"url"` // without its query
	Credentials []string  `json:"credentials"`
	Refused     []string  `json:"refused_credentials"`
	Decision    string    `json:"decision"`
	Times       int       `json:"times"` // rejected requests to one host within a minute
	Status      *int      `json:"status"`
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
	cmd.RunE = c.inWorkspace(func(ctx context.Context, a *admin, _ []string) error {
		var of *uuid.UUID
		if session != "" {
			of = new(uuid.MustParse(session))
		}
		list, err := a.Runner.Requests(ctx, a.Workspace.ID, of, limit)
		if err != nil {
			return err
		}
		shown := make([]requestShown, len(list))
		for i, r := range list {
			shown[i] = requestShown{ID: r.ID, SessionID: r.SessionID, TurnID: r.TurnID, ToolUseID: r.CallID, At: r.At, Method: r.Method,
				URL: r.Scheme + "://" + r.Host + r.Path, Credentials: r.Credentials, Refused: r.Refused, Decision: r.Decision, Times: r.Times, Status: r.Status}
		}
		return c.printList(shown, len(shown), "No recorded requests.",
			[]string{"AT", "SESSION", "REQUEST", "SECRETS", "DECISION", "TIMES", "STATUS"}, func(i int) []string {
				r := shown[i]
				secrets, status := "none", "none"
				if len(r.Credentials) > 0 {
					secrets = strings.Join(r.Credentials, " ")
				}
				if r.Status != nil {
					status = strconv.Itoa(*r.Status)
				}
				return []string{formatDay(&r.At), r.SessionID.String(), r.Method + " " + shortText(r.URL, 80), secrets, r.Decision,
					strconv.Itoa(r.Times), status}
			})
	})
	workspaceFlag(cmd)
	cmd.Flags().StringVar(&session, "session", "", "only those of this session")
	cmd.Flags().IntVar(&limit, "limit", 50, "how many, 1 to 1000")
	return cmd
}
