package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/parley-server/parley/client"
	"github.com/parley-server/parley/internal/store/toolset"
)

func (c *command) toolsAdd() *cobra.Command {
	var s client.NewToolServer
	var f toolsFlags
	cmd := &cobra.Command{
		Use:   "add NAME {--mcp URL | --http @FILE | --openapi FILE}",
		Short: "add an MCP server or an HTTP API with its tools",
		Long: `With --mcp it connects to the server, prints its tools and accepts their definitions. With --http
it adds one tool, whose request a YAML file defines; with --openapi each --operation of an OpenAPI 3
document becomes a tool. A tool has the label changes, so its calls need approval, until parley
tools label. --secret names a secret of the workspace whose hosts include the server; its value is
sent as a bearer token. A server with --oauth has its tools after parley tools connect.`,
		Example: `  parley tools add crm --mcp https://crm.example.com/mcp --secret CRM_TOKEN --allow find
  parley tools add weather --http @weather.yaml
  parley tools add erp --openapi erp.yaml --operation getCustomer --header 'X-Api-Key: ${ERP_KEY}'`,
		Args: exactArguments("NAME"),
	}
	cmd.PreRunE = func(*cobra.Command, []string) error { return f.check(cmd) }
	cmd.RunE = c.administerOutside(func(ctx context.Context, a *administration, args []string) error {
		s.Name, s.Timeout, s.Headers = args[0], int(f.timeout/time.Second), make(map[string]string)
		if err := c.readTools(f, &s); err != nil {
			return err
		}
		for _, h := range f.headers {
			name, value, _ := strings.Cut(h, ":")
			s.Headers[strings.TrimSpace(name)] = strings.TrimSpace(value)
		}
		if f.secret != "" {
			s.Headers["Authorization"] = "Bearer ${" + f.secret + "}"
		}
		if f.replace {
			changed, err := a.ReplaceHTTPTools(ctx, s.Name, s.HTTPTools)
			if err != nil {
				return err
			}
			return c.printToolServer(changed, "Replaced the tools of %s: it has %d.", changed.Name, len(changed.Tools))
		}
		if f.oauth || f.perCaller || s.ClientID != "" || s.Secret != "" || s.Scopes != nil {
			s.Auth = toolset.AuthOAuth
		}
		if f.perCaller {
			s.AuthPer = toolset.PerCaller
		}
		added, err := a.AddToolServer(ctx, s)
		if err != nil {
			return err
		}
		if s.Auth != "" {
			return c.printToolServer(added, "Added %s. Next: parley tools connect %s", added.Name, added.Name)
		}
		return c.printToolServer(added, "Added %s with %d tools. Next: parley tools label %s TOOL read_only", added.Name,
			len(added.Tools), added.Name)
	})
	workspaceFlag(cmd)
	cmd.Flags().StringVar(&f.mcp, "mcp", "", "the address of the server, which speaks MCP over Streamable HTTP")
	cmd.Flags().StringVar(&f.http, "http", "", "@FILE with the definition of one HTTP tool, in YAML")
	cmd.Flags().StringVar(&f.openapi, "openapi", "", "an OpenAPI 3 document")
	cmd.Flags().StringSliceVar(&s.Operations, "operation", nil, "an operation of the document, by its operationId; may be repeated")
	cmd.Flags().StringVar(&f.url, "url", "", "the address of the HTTP API; default: the first server of the document")
	cmd.Flags().StringVar(&f.secret, "secret", "", "a secret to send as a bearer token")
	cmd.Flags().StringArrayVar(&f.headers, "header", nil, "a header of each request, 'NAME: VALUE' with ${SECRET}; may be repeated")
	cmd.Flags().StringSliceVar(&s.Allow, "allow", nil, "a tool of an MCP server to take, as the server names it; may be repeated")
	cmd.Flags().DurationVar(&f.timeout, "timeout", toolset.DefaultTimeout, "how long a call may take")
	cmd.Flags().BoolVar(&f.replace, "replace", false, "replace the tools of an HTTP API that was added before")
	cmd.Flags().BoolVar(&f.oauth, "oauth", false, "authorize requests to an MCP server with OAuth 2.1")
	cmd.Flags().BoolVar(&f.perCaller, "per-caller", false, "let each caller connect the server, with OAuth")
	cmd.Flags().StringVar(&s.ClientID, "client-id", "", "the client at the authorization server, if Parley cannot register there")
	cmd.Flags().StringVar(&s.Secret, "client-secret", "", "the NAME of a secret with the secret of the client")
	cmd.Flags().StringSliceVar(&s.Scopes, "scope", nil, "a scope to ask for, in place of those that the server names; may be repeated")
	return cmd
}

func (c *command) toolsRefresh() *cobra.Command {
	return withWorkspace(&cobra.Command{
		Use:   "refresh SERVER",
		Short: "compare the tools of a server with the accepted ones",
		Example: `  parley tools refresh crm
  parley tools refresh crm --json`,
		Args: exactArguments("SERVER"),
		RunE: c.administerOutside(func(ctx context.Context, a *administration, args []string) error {
			s, err := a.RefreshToolServer(ctx, args[0])
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
				return c.printToolServer(s, "%d %s for acceptance. Next: parley tools accept %s TOOL", waiting,
					pluralize(waiting, "definition waits", "definitions wait"), s.Name)
			}
			return c.printToolServer(s, "No definition of %s has changed.", s.Name)
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
	cmd.RunE = c.administerOutside(func(ctx context.Context, a *administration, args []string) error {
		text, err := c.flagArgument(input)
		if err != nil {
			return err
		}
		if !json.Valid([]byte(text)) {
			return usageError(cmd, fmt.Sprintf("The input %q is not JSON.", shortText(text, 40)), "--input takes a JSON object or @FILE.")
		}
		began := time.Now()
		res, err := a.TestOwnTool(ctx, args[0], args[1], json.RawMessage(text))
		if err != nil {
			return err
		}
		if c.json {
			err = c.printData(object{"ok": res.OK, "output": res.Output, "milliseconds": time.Since(began).Milliseconds()})
		} else if res.OK {
			fmt.Fprintln(c.Stdout, escapeControls(res.Output))
		}
		if err == nil && !res.OK {
			err = &problem{Exit: exitFailed, Code: "TOOL_FAILED", What: "The call failed.", Why: res.Output}
		}
		return err
	})
	workspaceFlag(cmd)
	cmd.Flags().StringVar(&input, "input", "{}", "the input, a JSON object or @FILE")
	return cmd
}
