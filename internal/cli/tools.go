package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/parley-server/parley/internal/store/toolset"
)

func (c *command) toolsCommand() *cobra.Command {
	return groupOf(&cobra.Command{
		Use:     "tools",
		Aliases: []string{"tool"},
		Short:   "manage the tool servers of a workspace",
		Long: `A tool server is an MCP server whose tools the agent can call, as server__tool. Its definitions are
pinned: when the server changes one, the tool is disabled until parley tools accept.`,
		Example: `  parley tools add crm --mcp https://crm.example.com/mcp --secret CRM_TOKEN
  parley tools label crm find read_only
  parley tools refresh crm`,
	}, c.toolsAdd(), c.toolsList(), c.toolsShow(), c.toolsTest(), c.toolsRefresh(), c.toolsAccept(), c.toolsLabel(), c.toolsEnable(true), c.toolsEnable(false), c.toolsRemove())
}

// toolServerShown is a tool server in --json.
type toolServerShown struct {
	Name      string            `json:"name"`
	URL       string            `json:"url"`
	Headers   map[string]string `json:"headers"`
	Enabled   bool              `json:"enabled"`
	LastError string            `json:"last_error"`
	Tools     []ownToolShown    `json:"tools"`
	Skipped   []toolset.Skipped `json:"skipped,omitempty"`
}

type ownToolShown struct {
	Name       string              `json:"name"`
	OwnName    string              `json:"own_name"`
	State      toolset.State       `json:"state"`
	Label      toolset.Label       `json:"label"`
	Definition *toolset.Definition `json:"definition"`
	Offered    *toolset.Definition `json:"offered"`
}

func showToolServer(s toolset.Server, skipped []toolset.Skipped) toolServerShown {
	shown := toolServerShown{s.Name, s.URL, s.Headers, s.Enabled, s.LastError, make([]ownToolShown, len(s.Tools)), skipped}
	for i, t := range s.Tools {
		shown.Tools[i] = ownToolShown{t.Name, t.OwnName, t.State(), t.Label, t.Definition, t.Offered}
	}
	return shown
}

// printToolServer prints a server after a change, with what the administrator should see.
func (c *command) printToolServer(s toolset.Server, skipped []toolset.Skipped, done string, args ...any) error {
	if c.json {
		return c.printData(showToolServer(s, skipped))
	}
	for _, k := range skipped {
		fmt.Fprintf(c.Stderr, "Skipped %s: %s\n", k.OwnName, k.Reason)
	}
	for _, t := range s.Tools {
		c.printOffer(t)
	}
	return c.printDone(nil, done, args...)
}

// printOffer prints the difference between the accepted definition of a tool and the offered one.
func (c *command) printOffer(t toolset.Tool) {
	if t.Offered == nil {
		return
	}
	fmt.Fprintf(c.Stdout, "%s is %s\n", t.Name, t.State())
	if t.Definition != nil {
		fmt.Fprint(c.Stdout, prefixed("- ", definitionText(*t.Definition)))
	}
	fmt.Fprint(c.Stdout, prefixed("+ ", definitionText(*t.Offered)))
}

func definitionText(d toolset.Definition) string {
	hints, err := json.Marshal(d.Annotations)
	if err != nil {
		hints = nil
	}
	return escapeControls(d.Description) + "\ninput: " + escapeControls(string(d.Schema)) + "\nhints: " + string(hints)
}

func prefixed(prefix, s string) string {
	return prefix + strings.ReplaceAll(s, "\n", "\n"+prefix) + "\n"
}

func (c *command) toolsList() *cobra.Command {
	return withWorkspace(&cobra.Command{
		Use:   "list",
		Short: "list tool servers with their tools",
		Example: `  parley tools list
  parley tools list --workspace sales --json`,
		Args: nothing,
		RunE: c.inWorkspace(func(ctx context.Context, a *admin, _ []string) error {
			list, err := a.Toolset.List(ctx, a.Workspace.ID)
			if err != nil {
				return err
			}
			shown := make([]toolServerShown, len(list))
			for i, s := range list {
				shown[i] = showToolServer(s, nil)
			}
			return c.printList(shown, len(shown), "No tool servers. Add one: parley tools add NAME --mcp URL",
				[]string{"SERVER", "URL", "TOOLS", "USABLE", "LAST ERROR"}, func(i int) []string {
					s, usable := shown[i], 0
					for _, t := range s.Tools {
						if s.Enabled && t.State == toolset.Usable {
							usable++
						}
					}
					return []string{s.Name, s.URL, fmt.Sprint(len(s.Tools)), fmt.Sprint(usable), shortText(s.LastError, 60)}
				})
		}),
	})
}

func (c *command) toolsShow() *cobra.Command {
	return withWorkspace(&cobra.Command{
		Use:   "show SERVER",
		Short: "show a tool server with its tools and changes",
		Example: `  parley tools show crm
  parley tools show crm --json`,
		Args: exactArguments("SERVER"),
		RunE: c.inWorkspace(func(ctx context.Context, a *admin, args []string) error {
			s, err := a.Toolset.Find(ctx, a.Workspace.ID, args[0])
			if err != nil {
				return err
			}
			shown := showToolServer(s, nil)
			if c.json {
				return c.printData(shown)
			}
			err = c.printList(shown.Tools, len(shown.Tools), "The server has no tools.", []string{"TOOL", "STATE", "LABEL", "DESCRIPTION"}, func(i int) []string {
				t := shown.Tools[i]
				text := ""
				if t.Definition != nil {
					text = shortText(t.Definition.Description, 60)
				}
				return []string{t.Name, string(t.State), string(t.Label), text}
			})
			for _, t := range s.Tools {
				c.printOffer(t)
			}
			return err
		}),
	})
}
