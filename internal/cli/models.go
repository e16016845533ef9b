package cli

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/parley-server/parley/client"
)

func (c *command) modelsCommand() *cobra.Command {
	return groupOf(&cobra.Command{
		Use:     "models",
		Aliases: []string{"model"},
		Short:   "manage models: prices, providers, fallback",
		Long: `Prices are in US dollars for a million tokens. They come with the release, and the file of
PARLEY_PRICES replaces and adds entries. A limit in US dollars needs a model with a known price.`,
		Example: `  parley models list
  parley models set vllm --url https://vllm.example.com/v1 --secret VLLM_KEY
  parley models fallback anthropic/claude-sonnet-4-5`,
	}, c.modelsList(), c.modelsProviders(), c.modelsSet(), c.modelsUnset(), c.modelsTest(), c.modelsFallback())
}

func (c *command) modelsList() *cobra.Command {
	var used bool
	cmd := &cobra.Command{
		Use:   "list",
		Short: "list models with their context windows and prices",
		Example: `  parley models list
  parley models list --used --json`,
		Args: nothing,
	}
	cmd.RunE = c.administerOutside(func(ctx context.Context, a *administration, _ []string) error {
		list, err := a.Models(ctx)
		if err != nil {
			return err
		}
		list = slices.DeleteFunc(list, func(m client.Model) bool { return used && !m.InUse })
		return c.printList(list, len(list), "No agent of the workspace names a model. See parley models list",
			[]string{"MODEL", "IN USE", "WINDOW", "INPUT USD", "CACHED", "WRITTEN", "OUTPUT", "SOURCE"}, func(i int) []string {
				m := list[i]
				inUse := ""
				if m.InUse {
					inUse = "yes"
				}
				return []string{m.Name, inUse, strconv.Itoa(m.ContextWindow), formatRate(m.InputUSD), formatRate(m.CachedUSD),
					formatRate(m.CacheWriteUSD), formatRate(m.OutputUSD), modelSource(m)}
			})
	})
	workspaceFlag(cmd)
	cmd.Flags().BoolVar(&used, "used", false, "only the models that agents of the workspace name")
	return cmd
}

// formatRate prints the price of a million tokens.
func formatRate(usd *float64) string {
	if usd == nil {
		return "unknown"
	}
	return strconv.FormatFloat(*usd, 'f', -1, 64)
}

func modelSource(m client.Model) string {
	switch {
	case m.Source == nil:
		return "-"
	case m.Date == nil:
		return *m.Source
	}
	return fmt.Sprintf("%s, %s", *m.Source, *m.Date)
}
