package cli

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/parley-server/parley/client"
)

// inputHelp explains how to pass the inputs of a skill.
const inputHelp = `Inputs of a skill: --input name=text sets a string, --input name:=json another type (count:=3,
words:='["a","b"]'), and --input-json an object, from @FILE or from stdin with @-. --input overrides
--input-json. Put sensitive values into a file: other users can read command lines.
`

// inputFlags are a skill's inputs on the command line.
type inputFlags struct {
	pairs  []string
	object string
}

func (i *inputFlags) addFlags(cmd *cobra.Command) {
	cmd.Flags().StringArrayVar(&i.pairs, "input", nil, "a value for the skill: name=text or name:=json; may be repeated")
	cmd.Flags().StringVar(&i.object, "input-json", "", "the values for the skill as a JSON object, @FILE or @- for stdin")
	_ = cmd.MarkFlagFilename("input-json")
}

func (i *inputFlags) isGiven() bool { return len(i.pairs) > 0 || i.object != "" }

// readInput returns the input of a message. Errors do not repeat values.
func (i *inputFlags) readInput(c *command, cmd *cobra.Command) (client.Input, error) {
	if !i.isGiven() {
		return nil, nil
	}
	input := make(client.Input)
	if i.object != "" {
		text, err := i.inputText(c)
		if err != nil {
			return nil, err
		}
		if !utf8.ValidString(text) {
			return nil, notText(cmd, "--input-json")
		}
		if json.Unmarshal([]byte(text), &input) != nil || input == nil {
			return nil, usageError(cmd, "--input-json is not a JSON object.", `It looks like {"month": "2026-10"}.`)
		}
	}
	seen := make(map[string]bool)
	for _, pair := range i.pairs {
		name, text, ok := strings.Cut(pair, "=")
		name, typed := strings.CutSuffix(name, ":")
		switch {
		case !ok || name == "":
			return nil, usageError(cmd, "Invalid --input.", "It takes name=text, or name:=json.")
		case seen[name]:
			return nil, usageError(cmd, fmt.Sprintf("--input %s is given twice.", name), "A list is written as JSON: "+name+`:='["a","b"]'.`)
		case typed && !json.Valid([]byte(text)):
			return nil, usageError(cmd, fmt.Sprintf("The value of --input %s is not JSON.", name), "For a string write "+name+"=text.")
		}
		seen[name] = true
		if !typed {
			quoted, err := json.Marshal(text)
			if err != nil {
				return nil, fmt.Errorf("encode input: %w", err)
			}
			text = string(quoted)
		}
		input[name] = json.RawMessage(text)
	}
	return input, nil
}

// inputText returns the content of --input-json or of the file that it names.
func (i *inputFlags) inputText(c *command) (string, error) {
	if i.object != "@-" {
		return c.flagArgument(i.object)
	}
	if c.Stdin == nil {
		return "", nil
	}
	text, err := c.readStdin("")
	return string(text), err
}

func (c *command) skillsRun() *cobra.Command {
	s := sending{c: c}
	cmd := &cobra.Command{
		Use:   "run NAME",
		Short: "run a skill and print the answer",
		Example: `  parley skills run onboarding-checklist
  parley skills run monthly_report --input month=2026-10 --input team=sales
  jq .inputs order.json | parley skills run order --input-json @-`,
		Long: "Equals parley send --skill NAME.\n\n" + approveHelp + "\n" + inputHelp,
		Args: exactArguments("NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			s.message.Skill = args[0]
			return s.sendMessage(cmd)
		},
	}
	s.addFlags(cmd)
	return cmd
}
