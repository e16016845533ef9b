package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/parley-server/parley/client"
)

func (c *command) toolsCommand() *cobra.Command {
	return groupOf(&cobra.Command{
		Use:     "tools",
		Aliases: []string{"tool"},
		Short:   "manage the tool servers of a workspace",
		Long: `A tool server is an MCP server or an HTTP API whose tools the agent can call, as server__tool. The
definitions of an MCP server are pinned: when it changes one, the tool is disabled until parley
tools accept.`,
		Example: `  parley tools add crm --mcp https://crm.example.com/mcp --secret CRM_TOKEN
  parley tools label crm find read_only
  parley tools refresh crm`,
	}, c.toolsAdd(), c.toolsList(), c.toolsShow(), c.toolsTest(), c.toolsConnect(), c.toolsDisconnect(), c.toolsRefresh(),
		c.toolsAccept(), c.toolsLabel(), c.toolsEnable(true), c.toolsEnable(false), c.toolsRemove())
}

// printToolServer prints a server after a change, with what the administrator should see.
func (c *command) printToolServer(s client.ToolServer, done string, args ...any) error {
	if c.json {
		return c.printData(s)
	}
	for _, k := range s.Skipped {
		fmt.Fprintf(c.Stderr, "Skipped %s: %s\n", plainLine(k.Name), plainLine(k.Reason))
	}
	for _, t := range s.Tools {
		c.printOffer(t)
	}
	return c.printDone(nil, done, args...)
}

// printOffer prints the difference between the accepted definition of a tool and the offered one.
func (c *command) printOffer(t client.OwnTool) {
	if t.Offered == nil {
		return
	}
	fmt.Fprintf(c.Stdout, "%s is %s\n", t.Name, t.State)
	if t.Definition != nil {
		fmt.Fprint(c.Stdout, prefixed("- ", definitionText(*t.Definition)))
	}
	fmt.Fprint(c.Stdout, prefixed("+ ", definitionText(*t.Offered)))
}

func definitionText(d client.ToolDefinition) string {
	return escapeControls(d.Description) + "\ninput: " + escapeControls(string(d.InputSchema)) +
		"\nhints: " + escapeControls(string(d.Annotations))
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
		RunE: c.administerOutside(func(ctx context.Context, a *administration, _ []string) error {
			list, err := a.ToolServers(ctx)
			if err != nil {
				return err
			}
			return c.printList(list, len(list), "No tool servers. Add one: parley tools add NAME --mcp URL",
				[]string{"SERVER", "URL", "TOOLS", "USABLE", "LAST ERROR"}, func(i int) []string {
					s, usable := list[i], 0
					for _, t := range s.Tools {
						if s.Enabled && t.State == "usable" {
							usable++
						}
					}
					return []string{s.Name, s.URL, fmt.Sprint(len(s.Tools)), fmt.Sprint(usable), shortText(orEmpty(s.LastError), 60)}
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
		RunE: c.administerOutside(func(ctx context.Context, a *administration, args []string) error {
			s, err := a.ToolServer(ctx, args[0])
			if err != nil {
				return err
			}
			if c.json {
				return c.printData(s)
			}
			err = c.printList(s.Tools, len(s.Tools), "The server has no tools.", []string{"TOOL", "STATE", "LABEL", "DESCRIPTION"},
				func(i int) []string {
					t := s.Tools[i]
					text := ""
					if t.Definition != nil {
						text = shortText(t.Definition.Description, 60)
					}
					return []string{t.Name, t.State, t.Label, text}
				})
			for _, t := range s.Tools {
				c.printOffer(t)
			}
			return err
		}),
	})
}
