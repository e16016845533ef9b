package cli

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/parley-server/parley/client"
	"github.com/parley-server/parley/internal/store/toolset"
	"github.com/parley-server/parley/internal/toolfile"
)

// toolsFlags are the flags of parley tools add that are not members of a request.
type toolsFlags struct {
	mcp, http, openapi, url, secret string
	headers                         []string
	timeout                         time.Duration
	replace, oauth, perCaller       bool
}

// check reports flags that do not go together.
func (f toolsFlags) check(cmd *cobra.Command) error {
	given := 0
	for _, source := range []string{f.mcp, f.http, f.openapi} {
		if source != "" {
			given++
		}
	}
	switch {
	case given != 1:
		return usageError(cmd, "Specify one of --mcp, --http and --openapi.", "For example: parley tools "+
			"add crm --mcp https://crm.example.com/mcp")
	case f.mcp != "" && (f.url != "" || f.replace || cmd.Flags().Changed("operation")):
		return usageError(cmd, "--url, --operation and --replace are for HTTP APIs.", "Leave them out with --mcp.")
	case f.mcp == "" && cmd.Flags().Changed("allow"):
		return usageError(cmd, "--allow is for MCP servers.", "Choose operations of a document with --operation.")
	case f.http != "" && cmd.Flags().Changed("operation"):
		return usageError(cmd, "--operation is for --openapi.", "Leave it out with --http.")
	}
	return checkTimeout(cmd, f.timeout, toolset.MaxTimeout)
}

// readTools reads where the tools of a new entry come from.
func (c *command) readTools(f toolsFlags, s *client.NewToolServer) error {
	switch {
	case f.mcp != "":
		s.URL = f.mcp
		return nil
	case f.openapi != "":
		text, err := c.flagArgument("@" + strings.TrimPrefix(f.openapi, "@"))
		s.Kind, s.URL, s.OpenAPI = "http", f.url, text
		return err
	}
	text, err := c.flagArgument("@" + strings.TrimPrefix(f.http, "@"))
	if err != nil {
		return err
	}
	s.Kind = "http"
	return readToolFile(text, f.url, s)
}

// readToolFile reads the definition of an HTTP tool. base replaces the scheme and the host of its
// address.
func readToolFile(text, base string, s *client.NewToolServer) error {
	d, err := toolfile.Parse(text)
	if err != nil {
		return &problem{Exit: exitUsage, Code: "INVALID_FILE", What: "The definition of the tool cannot be read.",
			Why: plainLine(err.Error()), Do: "See parley docs http-tools."}
	}
	s.URL = cmp.Or(base, d.Host)
	maps.Copy(s.Headers, d.Headers)
	if err := json.Unmarshal(d.Tools, &s.Tools); err != nil {
		return fmt.Errorf("read the definition of a tool: %w", err)
	}
	return nil
}
