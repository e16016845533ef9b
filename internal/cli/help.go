package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/parley-server/parley/internal/search"
)

// help begins with examples: a user who asks for help wants the line to type.
const help = `{{with .Example}}Examples:
{{.}}

{{end}}{{with (or .Long .Short)}}{{. | trimTrailingWhitespaces}}

{{end}}{{if .Runnable}}Usage:
  {{if .HasAvailableSubCommands}}{{.CommandPath}} COMMAND{{else}}{{.UseLine}}{{end}}
{{end}}{{if .HasAvailableSubCommands}}
Commands:{{range .Commands}}{{if .IsAvailableCommand}}
  {{rpad .Name .NamePadding}} {{.Short}}{{end}}{{end}}
{{end}}{{if .HasAvailableLocalFlags}}
Flags:
{{.LocalFlags.FlagUsages | trimTrailingWhitespaces}}
{{end}}{{if .HasAvailableInheritedFlags}}
Flags of every command:
{{.InheritedFlags.FlagUsages | trimTrailingWhitespaces}}
{{end}}{{if .HasHelpSubCommands}}
More help:{{range .Commands}}{{if .IsAdditionalHelpTopicCommand}}
  parley help {{.Name}}    {{.Short}}{{end}}{{end}}
{{end}}`

// polishCommand gives every command the same help and the same errors.
func (c *command) polishCommand(cmd *cobra.Command) {
	cmd.SetHelpTemplate(help)
	cmd.SetFlagErrorFunc(unknownFlag)
	c.jsonFlag(cmd)
	if cmd.Long == "" && cmd.Short != "" {
		cmd.Long = strings.ToUpper(cmd.Short[:1]) + cmd.Short[1:] + "."
	}
	for _, sub := range cmd.Commands() {
		c.polishCommand(sub)
	}
	if run := cmd.RunE; run != nil {
		cmd.RunE = func(cmd *cobra.Command, args []string) error {
			c.started = true
			if err := checkFlagValues(cmd); err != nil {
				return err
			}
			return run(cmd, args)
		}
	}
	if args := cmd.Args; args != nil {
		cmd.Args = func(cmd *cobra.Command, given []string) error {
			err := args(cmd, given)
			if _, explained := errors.AsType[*problem](err); err != nil && !explained {
				return usageError(cmd, "Invalid arguments of "+cmd.CommandPath()+".", err.Error()+".")
			}
			return err
		}
	}
}

// usageError returns the error for an invalid command line.
func usageError(cmd *cobra.Command, what, why string) error {
	return &problem{Exit: exitUsage, Code: "USAGE", What: what, Why: why, Do: "See " + cmd.CommandPath() + " --help."}
}

// helpCommand is cobra's, except that it fails for an unknown topic.
func helpCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND]…",
		Short: "show help for a command",
		Example: `  parley help send
  parley help exit-codes`,
		Args: cobra.ArbitraryArgs, Annotations: map[string]string{ownOutput: "help is text"},
		RunE: func(cmd *cobra.Command, args []string) error {
			at := cmd.Root()
		words:
			for _, word := range args {
				for _, sub := range at.Commands() {
					if sub.Name() == word || sub.HasAlias(word) {
						at = sub
						continue words
					}
				}
				return unknown(at, word, true)
			}
			at.InitDefaultHelpFlag()
			return at.Help()
		},
	}
}

func unknownCommand(cmd *cobra.Command, name string) error { return unknown(cmd, name, false) }

// unknown returns the error for a word that is not a command; with topics, not a topic of the help
// either.
func unknown(cmd *cobra.Command, name string, topics bool) error {
	var names []string
	for _, sub := range cmd.Commands() {
		if sub.IsAvailableCommand() || topics && sub.IsAdditionalHelpTopicCommand() {
			names = append(names, sub.Name())
		}
	}
	p := &problem{
		Exit: exitUsage, Code: "USAGE",
		What: fmt.Sprintf("Unknown command %q.", name),
		Why:  fmt.Sprintf("%s has %s.", cmd.CommandPath(), strings.Join(names, ", ")),
		Do:   "See " + cmd.CommandPath() + " --help.",
	}
	if len(names) == 0 {
		p.Why = cmd.CommandPath() + " has no commands below it."
	}
	if near := search.Nearest(name, names, 1); len(near) > 0 {
		path := cmd.CommandPath()
		if topics {
			path = strings.Replace(path, cmd.Root().Name(), cmd.Root().Name()+" help", 1)
		}
		p.Do = fmt.Sprintf("Did you mean %s %s?", path, near[0])
	}
	return p
}

// unknownFlag adds the most similar flag to pflag's error.
func unknownFlag(cmd *cobra.Command, err error) error {
	p := &problem{
		Exit: exitUsage, Code: "USAGE",
		What: "Invalid flags of " + cmd.CommandPath() + ".", Why: err.Error() + ".", Do: "See " + cmd.CommandPath() + " --help.",
	}
	name, unknown := strings.CutPrefix(err.Error(), "unknown flag: ")
	if !unknown {
		if what, why := flagRefusal(cmd, err); what != "" {
			p.What, p.Why = what, why
		}
		return p
	}
	p.What, p.Why = fmt.Sprintf("Unknown flag %s.", name), cmd.CommandPath()+" does not have it."
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, "--"+f.Name) })
	if near := search.Nearest(name, names, 1); len(near) > 0 {
		p.Do = fmt.Sprintf("Did you mean %s?", near[0])
	}
	return p
}
