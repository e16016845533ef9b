package cli

import (
	"fmt"

	"github.com/spf13/cobra"
)

// initCompletion adds cobra's completion command with texts in the style of the other commands. Its
// scripts go to root's stdout, so set that before.
func initCompletion(root *cobra.Command) {
	root.InitDefaultCompletionCmd()
	cmd, _, err := root.Find([]string{"completion"})
	if err != nil {
		return
	}
	cmd.Short = "print a completion script for a shell"
	cmd.Long = ""
	cmd.Example = "  parley completion bash > /etc/bash_completion.d/parley\n  parley completion zsh > \"${fpath[1]}/_parley\""
	cmd.Args, cmd.RunE = cobra.ArbitraryArgs, runGroup
	for _, shell := range cmd.Commands() {
		shell.Annotations = map[string]string{ownOutput: "a script"}
		shell.Short = "print the completion script for " + shell.Name()
		shell.Example = fmt.Sprintf("  parley completion %[1]s\n  parley completion %[1]s --no-descriptions", shell.Name())
	}
}
