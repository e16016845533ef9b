package cli

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"

	"github.com/parley-server/parley/client"
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
		return usageError(cmd, "Specify one of --mcp, --http and --openapi.", "For example: parley tools add crm --mcp https://crm.example.com/mcp")
	case f.mcp != "" && (f.url != "" || f.replace || cmd.Flags().Changed("operation")):
		return usageError(cmd, "--url, --operation and --replace are for HTTP APIs.", "Leave them out with --mcp.")
	case f.mcp == "" && cmd.Flags().Changed("allow"):
		return usageError(cmd, "--allow is for MCP servers.", "Choose operations of a document with --operation.")
	case f.http != "" && cmd.Flags().Changed("operation"):
		return usageError(cmd, "--operation is for --openapi.", "Leave it out with --http.")
	case f.timeout != f.timeout.Truncate(time.Second):
		return usageError(cmd, fmt.Sprintf("--timeout %s is not a number of whole seconds.", f.timeout), "Give a time such as 90s.")
	}
	return nil
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

// toolFile is the definition of one HTTP tool.
type toolFile struct {
	Title       string            `yaml:"title"`
	Description string            `yaml:"description"`
	Method      string            `yaml:"method"`
	URL         string            `yaml:"url"` // with the template of the path
	InputSchema map[string]any    `yaml:"input_schema"`
	In          map[string]string `yaml:"in"`
	Headers     map[string]string `yaml:"headers"`
	Label       string            `yaml:"label"`
	Idempotent  bool              `yaml:"idempotent"`
	Timeout     int               `yaml:"timeout_seconds"`
	Later       *bool             `yaml:"later"`
}

// readToolFile reads the definition of an HTTP tool. base replaces the scheme and the host of its address.
func readToolFile(text, base string, s *client.NewToolServer) error {
	var t toolFile
	d := yaml.NewDecoder(bytes.NewReader([]byte(text)))
	d.KnownFields(true)
	if err := d.Decode(&t); err != nil {
		return &problem{Exit: exitUsage, Code: "INVALID_FILE", What: "The definition of the tool cannot be read.", Why: plainLine(err.Error()), Do: "See parley docs http-tools."}
	}
	s.URL = base
	path := t.URL
	if u, err := url.Parse(t.URL); err == nil && u.Host != "" {
		host := u.Scheme + "://" + u.Host
		path = strings.TrimPrefix(t.URL, host)
		if base == "" {
			s.URL = host
		}
	}
	tool := client.HTTPTool{Title: t.Title, Description: t.Description, Label: t.Label, Idempotent: t.Idempotent,
		HTTP: client.HTTPRequest{Method: t.Method, Path: cmp.Or(path, "/"), In: t.In, Timeout: t.Timeout, Later: t.Later}}
	if t.InputSchema != nil {
		schema, err := json.Marshal(t.InputSchema)
		if err != nil {
			return fmt.Errorf("encode the input schema: %w", err)
		}
		tool.InputSchema = schema
	}
	for name, value := range t.Headers {
		s.Headers[name] = value
	}
	s.Tools = []client.HTTPTool{tool}
	return nil
}
