package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/parley-server/parley/internal/app"
)

const settingKey = "parley_setting"

// addSettingFlag adds a flag for a setting. Its name may include its letter: "workspace,w".
func addSettingFlag(cmd *cobra.Command, name, setting, usage string) {
	name, letter, _ := strings.Cut(name, ",")
	cmd.Flags().StringP(name, letter, "", fmt.Sprintf("%s (%s)", usage, setting))
	_ = cmd.Flags().SetAnnotation(name, settingKey, []string{setting})
}

// switchOff adds a flag without a value that sets a setting.
func switchOff(cmd *cobra.Command, name, setting, value, usage string) {
	cmd.Flags().Bool(name, false, fmt.Sprintf("%s (%s=%s)", usage, setting, value))
	_ = cmd.Flags().SetAnnotation(name, settingKey, []string{setting, value})
}

// loadSettings reads the settings from the command's flags, the environment and the configuration
// file.
func (c *command) loadSettings(cmd *cobra.Command) (app.Config, error) {
	src := app.Sources{Environ: c.Environ, File: c.configFile}
	cmd.Flags().Visit(func(f *pflag.Flag) {
		switch of := f.Annotations[settingKey]; {
		case len(of) == 1:
			src.Flags = append(src.Flags, app.Flag{Name: "--" + f.Name, Setting: of[0], Value: f.Value.String()})
		case len(of) == 2 && f.Value.String() == "true":
			src.Flags = append(src.Flags, app.Flag{Name: "--" + f.Name, Setting: of[0], Value: of[1]})
		}
	})
	return app.Load(src)
}

func (c *command) configCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "config",
		Short: "show the configuration",
		Example: `  parley config list
  PARLEY_CONFIG=parley.env parley config list --json`,
		RunE: runGroup,
		Args: cobra.ArbitraryArgs,
	}
	show := &cobra.Command{
		Use:     "list",
		Aliases: []string{"print"},
		Short:   "list settings with their values and sources",
		Example: `  parley config list
  parley config list --json
  parley config list --config /etc/parley.env`,
		Args: nothing,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := c.loadSettings(cmd)
			settings := cfg.Settings()
			if printErr := c.printList(settings, len(settings), "", []string{"SETTING", "VALUE", "SOURCE"}, func(i int) []string {
				source := settings[i].Source
				if settings[i].Value == "" {
					source = "not set"
				}
				return []string{settings[i].Name, settings[i].Value, source}
			}); printErr != nil {
				return printErr
			}
			return err // after the table, which helps to fix it
		},
	}
	cmd.AddCommand(show)
	return cmd
}
