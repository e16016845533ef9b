package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/parley-server/parley/client"
	"github.com/parley-server/parley/internal/store/agent"
)

// optionFlags are the fields of a message besides its text.
type optionFlags struct {
	secrets  []string
	files    []string
	schema   string
	tools    string
	callback string
	ifBusy   string
	limits   client.Limits
	agent    agentChoice
	cost     float64
	metadata []string
	effort   string
}

var strategies = []string{"reject", "enqueue", "interrupt"}

func (o *optionFlags) addFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	o.agent.flags(f)
	f.StringSliceVar(&o.secrets, "secret-input", nil, "the name of a secret that the agent may use; may be repeated")
	f.StringSliceVar(&o.files, "attach", nil, "the id of an uploaded file, see parley files upload; may be repeated")
	f.StringVar(&o.schema, "schema", "", "a file with the JSON Schema of the answer")
	_ = cmd.MarkFlagFilename("schema")
	f.StringVar(&o.tools, "tools", "", "tools that you run, as JSON or as @FILE: a list with name, description and input_schema")
	f.StringVar(&o.callback, "callback", "", "do not wait: the server calls this https address when the turn ends")
	f.StringVar(&o.ifBusy, "if-busy", "", "while the session answers another message: reject (the default), enqueue or interrupt")
	f.Float64Var(&o.cost, "max-cost", 0, "end the turn at this cost in US dollars")
	f.StringArrayVar(&o.metadata, "metadata", nil, "a pair name=text to find the message by; may be repeated")
	f.StringVar(&o.effort, "effort", "", "effort of a model that reasons: minimal, low, medium or high; default: the agent's")
	f.IntVar(&o.limits.MaxTurns, "max-turns", 0, "end the turn after this many calls of the model")
	f.IntVar(&o.limits.MaxResponseSeconds, "max-seconds", 0, "end the turn after this many seconds")
}

// readOptions copies the options into a message.
func (o *optionFlags) readOptions(c *command, cmd *cobra.Command, m *client.Message) error {
	if o.ifBusy != "" && !slices.Contains(strategies, o.ifBusy) {
		return usageError(cmd, fmt.Sprintf("--if-busy cannot be %q.", o.ifBusy), "It takes "+strings.Join(strategies, ", ")+".")
	}
	if o.effort != "" && !slices.Contains(agent.Efforts, o.effort) {
		return usageError(cmd, fmt.Sprintf("--effort cannot be %q.", o.effort), "It takes "+strings.Join(agent.Efforts, ", ")+".")
	}
	m.MultitaskStrategy, m.SecretInput, m.Effort = o.ifBusy, o.secrets, o.effort
	m.Agent, m.AgentVersion = o.agent.name, client.AgentVersion(o.agent.version)
	for _, id := range o.files {
		if uuid.Validate(id) != nil {
			return usageError(cmd, fmt.Sprintf("--attach cannot be %q.", id),
				"It takes the id of an uploaded file: parley files upload FILE prints it.")
		}
		m.Attachments = append(m.Attachments, client.Attached{FileID: id})
	}
	if o.callback != "" {
		m.Callback = &client.Receiver{URL: o.callback}
	}
	var err error
	if m.Metadata, err = readMetadata(cmd, o.metadata); err != nil {
		return err
	}
	if cmd.Flags().Changed("max-cost") {
		o.limits.MaxCostUSD = &o.cost
	}
	if err := checkLeast(cmd, 1, "max-turns", "max-seconds"); err != nil {
		return err
	}
	if o.limits != (client.Limits{}) {
		m.Limits = &o.limits
	}
	if m.Tools, err = c.readOwnTools(cmd, o.tools); err != nil {
		return err
	}
	if o.schema == "" {
		return nil
	}
	schema, err := os.ReadFile(c.resolvePath(o.schema))
	if err != nil {
		return unreadableError(err)
	}
	if !utf8.Valid(schema) {
		return notText(cmd, "The file of --schema")
	}
	if !json.Valid(schema) {
		return usageError(cmd, "The file of --schema is not JSON.", "It holds a JSON Schema, such as "+`{"type": "object"}.`)
	}
	m.ResponseSchema = schema
	return nil
}

// readMetadata parses the values of --metadata.
func readMetadata(cmd *cobra.Command, pairs []string) (map[string]string, error) {
	if len(pairs) == 0 {
		return nil, nil
	}
	metadata := make(map[string]string, len(pairs))
	for _, pair := range pairs {
		name, value, ok := strings.Cut(pair, "=")
		if !ok || name == "" {
			return nil, usageError(cmd, fmt.Sprintf("--metadata cannot be %q.", pair), "It takes name=text, such as --metadata plan=gold.")
		}
		if _, twice := metadata[name]; twice {
			return nil, usageError(cmd, fmt.Sprintf("--metadata %s is given twice.", name), "A name has one value.")
		}
		metadata[name] = value
	}
	return metadata, nil
}
