package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/parley-server/parley/internal/store/toolset"
	"github.com/parley-server/parley/internal/tool"
)

func (c *command) toolsAdd() *cobra.Command {
	var e toolset.Entry
	var secret string
	var headers []string
	cmd := &cobra.Command{
		Use:   "add NAME --mcp URL",
		Short: "add an MCP server and accept its tools",
		Long: `Connects to the server, prints its tools and accepts their definitions. Every tool has the label
changes, so its calls need approval, until parley tools label. --secret names a secret of the
workspace whose hosts include the server; its value is sent as a bearer token.`,
		Example: `  parley tools add crm --mcp https://crm.example.com/mcp --secret CRM_TOKEN
  parley tools add docs --mcp https://docs.example.com/mcp --allow search --allow read
  parley tools add erp --mcp https://erp.example.com/mcp --header 'X-Api-Key: ${ERP_KEY}'`,
		Args: exactArguments("NAME"),
	}
	cmd.RunE = c.inWorkspace(func(ctx context.Context, a *admin, args []string) error {
		e.Name, e.Headers = args[0], make(map[string]string)
		for _, h := range headers {
			name, value, _ := strings.Cut(h, ":")
			e.Headers[strings.TrimSpace(name)] = strings.TrimSpace(value)
		}
		if secret != "" {
			e.Headers["Authorization"] = "Bearer ${" + secret + "}"
		}
		offers, protocol, err := c.askToolServer(ctx, a, e.Server())
		if err != nil {
			return err
		}
		server, skipped, err := a.Toolset.Add(ctx, a.Workspace.ID, e, protocol, offers)
		if err != nil {
			return err
		}
		return c.printToolServer(server, skipped, "Added %s with %d tools. Next: parley tools label %s TOOL read_only", server.Name, len(server.Tools), server.Name)
	})
	workspaceFlag(cmd)
	cmd.Flags().StringVar(&e.URL, "mcp", "", "the address of the server, which speaks MCP over Streamable HTTP")
	cmd.Flags().StringVar(&secret, "secret", "", "a secret to send as a bearer token")
	cmd.Flags().StringArrayVar(&headers, "header", nil, "a header of each request, 'NAME: VALUE' with ${SECRET}; may be repeated")
	cmd.Flags().StringSliceVar(&e.Allowed, "allow", nil, "a tool to take, as the server names it; may be repeated")
	cmd.Flags().DurationVar(&e.Timeout, "timeout", toolset.DefaultTimeout, "how long a call may take")
	_ = cmd.MarkFlagRequired("mcp")
	return cmd
}

// askToolServer lists the tools that a server offers now.
func (c *command) askToolServer(ctx context.Context, a *admin, s toolset.Server) (offers []toolset.Offer, protocol string, err error) {
	probe, err := a.OpenProbe(ctx, a.Config)
	if err != nil {
		return nil, "", err
	}
	offers, protocol, err = probe.List(ctx, a.Workspace.ID, s)
	if refused, ok := errors.AsType[tool.Refusal](err); ok {
		return nil, "", &problem{Exit: exitFailed, Code: "UNREACHABLE", What: "The tool server does not list its tools.", Why: string(refused), Do: "Check the address, the secret and PARLEY_EGRESS_ALLOW."}
	}
	return offers, protocol, err
}

func (c *command) toolsRefresh() *cobra.Command {
	return withWorkspace(&cobra.Command{
		Use:   "refresh SERVER",
		Short: "compare the tools of a server with the accepted ones",
		Example: `  parley tools refresh crm
  parley tools refresh crm --json`,
		Args: exactArguments("SERVER"),
		RunE: c.inWorkspace(func(ctx context.Context, a *admin, args []string) error {
			s, err := a.Toolset.Find(ctx, a.Workspace.ID, args[0])
			if err != nil {
				return err
			}
			offers, protocol, err := c.askToolServer(ctx, a, s)
			if err != nil {
				return err
			}
			s, skipped, err := a.Toolset.Refresh(ctx, a.Workspace.ID, s.Name, protocol, offers)
			if err != nil {
				return err
			}
			waiting := 0
			for _, t := range s.Tools {
				if t.Offered != nil {
					waiting++
				}
			}
			if waiting > 0 {
				return c.printToolServer(s, skipped, "%d definitions wait for acceptance. Next: parley tools accept %s TOOL", waiting, s.Name)
			}
			return c.printToolServer(s, skipped, "No definition of %s has changed.", s.Name)
		}),
	})
}

func (c *command) toolsTest() *cobra.Command {
	var input string
	cmd := &cobra.Command{
		Use:   "test SERVER TOOL",
		Short: "run a tool once without approval",
		Example: `  parley tools test crm find --input '{"name":"Ada"}'
  parley tools test crm find --input @input.json`,
		Args: exactArguments("SERVER", "TOOL"),
	}
	cmd.RunE = c.inWorkspace(func(ctx context.Context, a *admin, args []string) error {
		raw, err := c.flagArgument(input)
		if err != nil {
			return err
		}
		t, err := findOwnTool(ctx, a, args)
		if err != nil {
			return err
		}
		if t.Definition == nil {
			return &problem{Exit: exitUsage, Code: "REFUSED", What: "The tool was never accepted.", Do: "Accept it: parley tools accept " + args[0] + " " + t.OwnName}
		}
		server, err := a.Toolset.Find(ctx, a.Workspace.ID, args[0])
		if err != nil {
			return err
		}
		probe, err := a.OpenProbe(ctx, a.Config)
		if err != nil {
			return err
		}
		began := time.Now()
		res, err := probe.Call(ctx, a.Workspace.ID, server, t, []byte(raw))
		if refused, ok := errors.AsType[tool.Refusal](err); ok {
			res, err = tool.Reject(string(refused)), nil
		}
		if err != nil {
			return err
		}
		if !res.OK && !c.json {
			fmt.Fprintln(c.Stderr, "The call failed.")
		}
		if c.json {
			return c.printData(object{"ok": res.OK, "output": res.Output, "milliseconds": time.Since(began).Milliseconds()})
		}
		fmt.Fprintln(c.Stdout, escapeControls(res.Output))
		return nil
	})
	workspaceFlag(cmd)
	cmd.Flags().StringVar(&input, "input", "{}", "the input, a JSON object or @FILE")
	return cmd
}
