// Package manifest is the configuration of a workspace as a file, parley.yaml: it owns the format of
// the file, reads one from a workspace, and plans and makes the changes that make a workspace equal
// to one.
//
// It uses the administration API alone, through client.Admin. It promises: the value of a secret is
// neither read nor written; a plan changes nothing; after Apply the same file plans no change; an
// object that was changed since the plan is not overwritten.
package manifest

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Version is the version of the format.
const Version = 1

// Schema is the JSON Schema of the file.
//
//go:embed schema.json
var Schema string

// File is the configuration of a workspace. A section that is nil is not managed by the file.
type File struct {
	Version   int                `yaml:"parley"`
	Workspace *Workspace         `yaml:"workspace"`
	Agents    map[string]Agent   `yaml:"agents"`
	Skills    map[string]Text    `yaml:"skills"`     // SKILL.md by name
	ToolRules map[string]string  `yaml:"tool_rules"` // allow, ask or deny by tool
	Allowlist []string           `yaml:"allowlist"`
	Egress    *Egress            `yaml:"egress"`
	Secrets   map[string]*Secret `yaml:"secrets"` // nil: a name without hosts, which apply only checks
	Budgets   []Budget           `yaml:"budgets"`

	ToolServers map[string]ToolServer `yaml:"tool_servers"`
	Providers   map[string]Provider   `yaml:"model_providers"`
	Documents   map[string]Text       `yaml:"documents,omitempty"` // content by path

	patterns map[string]string // ids of the patterns, as far as the file was read from a workspace
	standard string            // name of its default agent
}

// Workspace are settings of a workspace. A nil field stays unchanged. What describes the default
// agent is in its entry of Agents.
type Workspace struct {
	Name               *string `yaml:"name,omitempty"`
	MaxRunning         *int    `yaml:"max_running,omitempty"`
	StorageQuota       *int64  `yaml:"storage_quota,omitempty"` // bytes; 0: no limit
	MessagesPerMinute  *Limit  `yaml:"messages_per_minute,omitempty"`
	CallsPerMinute     *Limit  `yaml:"calls_per_minute,omitempty"`
	OpenStreams        *Limit  `yaml:"open_streams,omitempty"`
	SeparateApprover   *bool   `yaml:"separate_approver,omitempty"`
	AdminPatterns      *bool   `yaml:"admin_patterns,omitempty"`
	CallerInstructions *bool   `yaml:"caller_instructions,omitempty"`
	CallerParameters   *bool   `yaml:"caller_parameters,omitempty"`

	FallbackModels     *[]string `yaml:"fallback_models,omitempty"`
	ReasoningSummaries *bool     `yaml:"reasoning_summaries,omitempty"`

	SearchLanguage *string `yaml:"search_language,omitempty"`
}

// Limit is a limit of each key: a number, or -1 for the server's own, which the file calls server.
type Limit int

const serverLimit = "server"

// MarshalYAML implements yaml.Marshaler.
func (l Limit) MarshalYAML() (any, error) {
	if l < 0 {
		return serverLimit, nil
	}
	return int(l), nil
}

// UnmarshalYAML implements yaml.Unmarshaler.
func (l *Limit) UnmarshalYAML(node *yaml.Node) error {
	if node.Value == serverLimit {
		*l = -1
		return nil
	}
	n, err := strconv.Atoi(node.Value)
	if err != nil || n < 0 {
		return fmt.Errorf("line %d: %q is not a limit. Use a number, or server for the server's own", node.Line, node.Value)
	}
	*l = Limit(n)
	return nil
}

// Agent is an agent: the definition of its published version.
type Agent struct {
	Model        *string            `yaml:"model,omitempty"`                // nil: the server's
	Effort       *string            `yaml:"effort,omitempty"`               // nil: the model's
	Fallbacks    *[]string          `yaml:"fallback_models,omitempty,flow"` // nil: those of the workspace
	Tools        *map[string]string `yaml:"tools,omitempty"`                // the offered tools with their labels; nil: every tool
	Rules        map[string]string  `yaml:"rules,omitempty"`
	Limits       *AgentLimits       `yaml:"limits,omitempty"`
	Instructions Text               `yaml:"instructions"`
}

// AgentLimits are the limits of a turn. A nil field has the value of a new agent.
type AgentLimits struct {
	MaxResponseSeconds *int     `yaml:"max_response_seconds,omitempty"`
	MaxTurns           *int     `yaml:"max_turns,omitempty"`
	HistoryTokens      *int     `yaml:"history_tokens,omitempty"` // nil: as many as fit the model's window
	MaxCostUSD         *float64 `yaml:"max_cost_usd,omitempty"`   // nil: no limit
}

// Egress is the policy for the hosts that tools may reach.
type Egress struct {
	Public bool     `yaml:"public"`
	Hosts  []string `yaml:"hosts"`
}

// Secret describes where a secret may go. Its value is set apart.
type Secret struct {
	Hosts     []string `yaml:"hosts"`
	InQuery   bool     `yaml:"in_query,omitempty"`
	InBody    bool     `yaml:"in_body,omitempty"`
	AllowHTTP bool     `yaml:"allow_http,omitempty"`

	isSet bool // it has a value, as far as it was read
}

// Budget limits the use of a day.
type Budget struct {
	Kind       string   `yaml:"kind"` // workspace, key or user
	Subject    string   `yaml:"subject,omitempty"`
	MaxCostUSD *float64 `yaml:"max_cost_usd,omitempty"`
	MaxTokens  *int64   `yaml:"max_tokens,omitempty"`
}

// Error is a fault of a file, which its author can correct.
type Error struct{ Message string }

// Error implements error.
func (e *Error) Error() string { return e.Message }

func faultf(format string, args ...any) error { return &Error{fmt.Sprintf(format, args...)} }

// Parse reads a file. read returns the content of another file that it names, and list the paths of
// the files in a folder, relative to it.
func Parse(source []byte, read func(name string) ([]byte, error), list func(folder string) ([]string, error)) (File, error) {
	var f File
	dec := yaml.NewDecoder(bytes.NewReader(source))
	dec.KnownFields(true)
	if err := dec.Decode(&f); errors.Is(err, io.EOF) {
		return f, faultf("The file is empty. It begins with parley: %d.", Version)
	} else if err != nil {
		return f, faultf("The file is not valid: %s.", yamlReason(err))
	}
	if dec.Decode(new(yaml.Node)) != io.EOF {
		return f, faultf("The file has several documents. Keep one.")
	}
	if f.Version != Version {
		return f, faultf("The format of the file is %d, and this program reads %d. The file begins with parley: %d.", f.Version, Version, Version)
	}
	if err := f.resolve(read, list); err != nil {
		return f, err
	}
	return f, f.normalize()
}

// yamlReason returns an error of the YAML package without its names of Go types.
func yamlReason(err error) string {
	text := err.Error()
	if wrong, ok := errors.AsType[*yaml.TypeError](err); ok {
		text = strings.Join(wrong.Errors, "; ")
	}
	text = strings.TrimPrefix(strings.TrimPrefix(text, "yaml: "), "unmarshal errors:\n  ")
	if at := strings.Index(text, " in type manifest."); at > 0 {
		text = strings.Replace(text[:at], "field ", "unknown member ", 1)
		text = strings.TrimSuffix(text, " not found")
	}
	return text
}

// Encode returns the file as YAML.
func (f File) Encode() (string, error) {
	f.Version = Version
	return encodeYAML(f)
}

func encodeYAML(v any) (string, error) {
	var node yaml.Node
	if err := node.Encode(v); err != nil {
		return "", fmt.Errorf("encode YAML: %w", err)
	}
	back := replaceAstral(&node)
	var b bytes.Buffer
	enc := yaml.NewEncoder(&b)
	enc.SetIndent(2)
	if err := errors.Join(enc.Encode(&node), enc.Close()); err != nil {
		return "", fmt.Errorf("encode YAML: %w", err)
	}
	return back.Replace(b.String()), nil
}
