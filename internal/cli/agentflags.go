package cli

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/parley-server/parley/client"
	"github.com/parley-server/parley/internal/store/agent"
	"github.com/parley-server/parley/internal/store/permission"
)

// agentFlagged names the flags that change a version of an agent.
var agentFlagged = []string{"instructions", "model", "effort", "fallback", "tool", "rule", "max-response-seconds", "max-turns",
	"history-tokens", "max-cost"}

// isAgentFlagged reports whether one of these flags is given.
func isAgentFlagged(cmd *cobra.Command) bool {
	given := false
	for _, name := range agentFlagged {
		given = given || cmd.Flags().Changed(name)
	}
	return given
}

// agentFlags adds the flags for a version of an agent. change applies those that are given.
func (c *command) agentFlags(cmd *cobra.Command) (change func(agent.Definition) (agent.Definition, error)) {
	f := cmd.Flags()
	instructions := f.String("instructions", "", "instructions for the agent; @FILE reads a file")
	model := f.String("model", "", "openai/NAME, anthropic/NAME, ollama/NAME or builtin/guide; \"\" is the server's own")
	effort := f.String("effort", "", "effort of the model: minimal, low, medium or high; \"\" is the model's own")
	fallbacks := f.StringSlice("fallback", nil,
		"a model that answers if the agent's fails; may be repeated; none is no model, \"\" those of the workspace")
	tools := f.StringSlice("tool", nil, "an offered tool with its label, such as bash=changes; may be repeated; all offers every tool")
	rules := f.StringSlice("rule", nil, "the rule of a tool: TOOL=allow, ask or deny; TOOL= removes it; may be repeated")
	seconds := f.Int("max-response-seconds", 600, "longest duration of a turn, 1 to 3600")
	turns := f.Int("max-turns", 50, "model calls in a turn, 1 to 200")
	history := f.Int("history-tokens", -1, "tokens of earlier turns that the model receives; -1: as many as fit its window")
	cost := f.Float64("max-cost", -1, "cost of a turn in US dollars; -1: no limit")
	maybeEmpty(cmd, "instructions", "model", "effort", "fallback")
	set := func(name string, apply func()) {
		if f.Changed(name) {
			apply()
		}
	}
	return func(d agent.Definition) (agent.Definition, error) {
		text, err := c.flagArgument(*instructions)
		if err != nil {
			return d, err
		}
		set("instructions", func() { d.Instructions = text })
		set("model", func() { d.Model = filledOrNil(model) })
		set("effort", func() { d.Effort = filledOrNil(effort) })
		set("fallback", func() { d.Fallbacks = fallbackModels(*fallbacks) })
		set("max-response-seconds", func() { d.Limits.MaxResponseSeconds = *seconds })
		set("max-turns", func() { d.Limits.MaxTurns = *turns })
		set("history-tokens", func() {
			if d.Limits.HistoryTokens = history; *history == -1 {
				d.Limits.HistoryTokens = nil
			}
		})
		set("max-cost", func() {
			if d.Limits.MaxCostUSD = cost; *cost == -1 {
				d.Limits.MaxCostUSD = nil
			}
		})
		set("tool", func() { d.Tools = toolLabels(*tools) })
		set("rule", func() { d.Rules = changedRules(d.Rules, *rules) })
		return d, nil
	}
}

func filledOrNil(s *string) *string {
	if *s == "" {
		return nil
	}
	return s
}

// fallbackModels returns the fallback models of an agent: nil for none that are named, and an empty
// list for none at all.
func fallbackModels(flags []string) []string {
	if len(flags) == 1 && flags[0] == "none" {
		return []string{}
	}
	if len(flags) == 0 || flags[0] == "" {
		return nil
	}
	return flags
}

// toolLabels parses tool=label. A built-in tool without a label has its own, and another tool
// changes; all is every tool.
func toolLabels(flags []string) map[string]permission.Label {
	tools := make(map[string]permission.Label)
	for _, flag := range flags {
		if flag == "all" {
			return nil
		}
		name, label, ok := strings.Cut(flag, "=")
		if tools[name] = permission.Label(label); ok {
			continue
		}
		if tools[name], ok = permission.LabelOf(name); !ok {
			tools[name] = permission.Changes
		}
	}
	return tools
}

// changedRules returns the rules of a version with those of flags.
func changedRules(before map[string]string, flags []string) map[string]string {
	rules := make(map[string]string)
	for tool, rule := range before {
		rules[tool] = rule
	}
	for _, flag := range flags {
		tool, rule, _ := strings.Cut(flag, "=")
		if rules[tool] = rule; rule == "" {
			delete(rules, tool)
		}
	}
	if len(rules) == 0 {
		return nil
	}
	return rules
}

// editInstructions opens the user's editor with the instructions of a version.
func (c *command) editInstructions(ctx context.Context, v client.VersionOfAgent) (string, error) {
	editor := c.envValue("VISUAL")
	if editor == "" {
		editor = c.envValue("EDITOR")
	}
	if editor == "" {
		return "", &problem{Exit: exitUsage, Code: "USAGE", What: "There is nothing to change.",
			Why: "No flag is set, and neither is VISUAL or EDITOR.", Do: "Set one, or use --instructions @FILE."}
	}
	file, err := os.CreateTemp("", "parley-"+v.Agent+"-*.md")
	if err != nil {
		return "", unwritableError(err)
	}
	defer os.Remove(file.Name())
	_, err = file.WriteString(v.Instructions)
	if closed := file.Close(); err != nil || closed != nil {
		return "", unwritableError(fmt.Errorf("write %s", file.Name()))
	}
	run := exec.CommandContext(ctx, "sh", "-c", editor+` "$1"`, "sh", file.Name())
	run.Dir, run.Env, run.Stdin, run.Stdout, run.Stderr = c.Dir, c.Environ, c.Stdin, c.Stdout, c.Stderr
	if err := run.Run(); err != nil {
		return "", &problem{Exit: exitFailed, Code: "FAILED", What: "The editor failed.", Why: errorSentence(err), Do: "Nothing was saved."}
	}
	text, err := os.ReadFile(file.Name())
	if err != nil {
		return "", unreadableError(err)
	}
	return string(text), nil
}

// agentChoice are the flags that name the agent of a message.
type agentChoice struct{ name, version string }

func (o *agentChoice) flags(f *pflag.FlagSet) {
	f.StringVar(&o.name, "agent", "", "the agent of the workspace that answers")
	f.StringVar(&o.version, "agent-version", "", "a number, or draft, which needs a key with the scope config:write")
}
