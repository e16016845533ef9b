package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/parley-server/parley/client"
	"github.com/parley-server/parley/internal/store/modelset"
)

func (c *command) modelsProviders() *cobra.Command {
	return withWorkspace(&cobra.Command{
		Use:   "providers",
		Short: "list the providers that the workspace has added",
		Example: `  parley models providers
  parley models providers --json`,
		Args: nothing,
		RunE: c.administer(func(ctx context.Context, a *administration, _ []string) error {
			list, err := a.ModelProviders(ctx)
			if err != nil {
				return err
			}
			return c.printList(list, len(list), "No providers; the workspace uses those of the server. Next: parley models set NAME --url URL",
				[]string{"PROVIDER", "KIND", "URL", "SECRET", "TIMEOUT"}, func(i int) []string {
					p := list[i]
					return []string{p.Name, p.Kind, p.BaseURL, cmp.Or(orEmpty(p.Credential), "-"), (time.Duration(p.Timeout) * time.Second).String()}
				})
		}),
	})
}

func (c *command) modelsSet() *cobra.Command {
	var kind, address, secret string
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "set PROVIDER",
		Short: "add or replace a provider of models",
		Long: `PROVIDER is the first part of the names of its models: with the provider vllm, an agent can use
vllm/llama-3.3-70b. A provider with the name of one of the server's replaces it in the workspace. Flags
that are left out have their defaults: openai and anthropic have their own addresses.`,
		Example: `  parley secrets set OPENAI_KEY --host api.openai.com
  parley models set openai --secret OPENAI_KEY
  parley models set vllm --url https://vllm.example.com/v1 --timeout 5m`,
		Args: exactArguments("PROVIDER"),
	}
	cmd.PreRunE = func(*cobra.Command, []string) error {
		if !cmd.Flags().Changed("timeout") {
			return nil
		}
		return checkTimeout(cmd, timeout, modelset.MaxTimeout)
	}
	cmd.RunE = c.administer(func(ctx context.Context, a *administration, args []string) error {
		var change client.ModelProviderChange
		for flag, to := range map[string]struct {
			value *string
			field **string
		}{"kind": {&kind, &change.Kind}, "url": {&address, &change.BaseURL}, "secret": {&secret, &change.Credential}} {
			if cmd.Flags().Changed(flag) {
				*to.field = to.value
			}
		}
		if cmd.Flags().Changed("kind") && kind != "openai" && kind != "anthropic" {
			return usageError(cmd, fmt.Sprintf("--kind %q is not a protocol.", shortText(kind, 40)),
				"--kind takes openai or anthropic. Most other providers have an address that is compatible with openai: --kind openai --url URL")
		}
		if cmd.Flags().Changed("timeout") {
			change.Timeout = new(int(timeout / time.Second))
		}
		p, err := a.PutModelProvider(ctx, args[0], change)
		if err != nil {
			return err
		}
		return c.printDone(p, "Set the provider %s. Next: parley models test %[1]s/MODEL", p.Name)
	})
	workspaceFlag(cmd)
	cmd.Flags().StringVar(&kind, "kind", "", "protocol: openai or anthropic; default: openai, or the provider's name")
	cmd.Flags().StringVar(&address, "url", "", "address of its API, with the version for openai")
	cmd.Flags().StringVar(&secret, "secret", "", "name of the secret that is its key")
	cmd.Flags().DurationVar(&timeout, "timeout", 0, "longest silence of a reply; default 2m")
	return cmd
}

func (c *command) modelsUnset() *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use:     "unset PROVIDER",
		Aliases: []string{"delete", "remove"},
		Short:   "remove a provider of models from the workspace",
		Long:    "It asks first if agents or the fallback models name models of the provider.",
		Example: `  parley models unset vllm
  parley models unset openai --workspace sales
  parley models unset vllm --yes      without asking`,
		Args: exactArguments("PROVIDER"),
		RunE: c.administer(func(ctx context.Context, a *administration, args []string) error {
			users, err := usersOfProvider(ctx, a, args[0])
			if err != nil {
				return err
			}
			if len(users) > 0 {
				used := plainLine(args[0]) + " is used by " + strings.Join(users, ", ") + "."
				if err := c.requireConsent(yes, used+" Remove it?", "Nothing was removed. "+used); err != nil {
					return err
				}
			}
			if err := a.DeleteModelProvider(ctx, args[0]); isNotFound(err) {
				return &problem{Exit: exitUsage, Code: "REFUSED", What: "The workspace has no such provider.", Do: "See parley models providers."}
			} else if err != nil {
				return err
			}
			return c.printDone(object{"name": args[0]}, "Removed the provider %s.", args[0])
		}),
	}
	yesFlag(cmd, &yes)
	return withWorkspace(cmd)
}

// usersOfProvider lists the agents that name a model of a provider, and the fallback models of the
// workspace if they do.
func usersOfProvider(ctx context.Context, a *administration, provider string) (users []string, err error) {
	agents, err := a.Agents(ctx)
	if err != nil {
		return nil, err
	}
	for _, ag := range agents {
		if strings.HasPrefix(orEmpty(ag.Model), provider+"/") {
			users = append(users, "the agent "+ag.Name)
		}
	}
	w, err := a.Workspace(ctx)
	if err != nil {
		return nil, err
	}
	if slices.ContainsFunc(w.FallbackModels, func(name string) bool { return strings.HasPrefix(name, provider+"/") }) {
		users = append(users, "the fallback models")
	}
	return users, nil
}

func (c *command) modelsTest() *cobra.Command {
	return withWorkspace(&cobra.Command{
		Use:   "test MODEL",
		Short: "send a short request to a model",
		Long:  "The request asks for one word and costs a few tokens. The exit code is 1 if the model does not answer.",
		Example: `  parley models test openai/gpt-5-mini
  parley models test vllm/llama-3.3-70b --json`,
		Args: exactArguments("MODEL"),
		RunE: c.administerOutside(func(ctx context.Context, a *administration, args []string) error {
			t, err := a.TestModel(ctx, args[0])
			if err != nil {
				return err
			}
			if !t.OK {
				return &problem{Exit: exitFailed, Code: "MODEL_ERROR", What: t.Model + " does not answer.", Why: orEmpty(t.Error)}
			}
			return c.printDone(t, "%s answered in %d ms.", t.Model, t.Milliseconds)
		}),
	})
}

func (c *command) modelsFallback() *cobra.Command {
	var none bool
	cmd := &cobra.Command{
		Use:   "fallback [MODEL...]",
		Short: "show or set the models that answer if an agent's model fails",
		Long: `If an agent's model is overloaded, without quota or not reachable before the first text of a step,
the next model of the list answers, for the rest of the turn.`,
		Example: `  parley models fallback
  parley models fallback anthropic/claude-sonnet-4-5 openai/gpt-5-mini
  parley models fallback --none`,
		Args: cobra.ArbitraryArgs,
	}
	cmd.RunE = c.administer(func(ctx context.Context, a *administration, args []string) error {
		if len(args) == 0 && !none {
			w, err := a.Workspace(ctx)
			if err != nil {
				return err
			}
			return c.printList(w.FallbackModels, len(w.FallbackModels), "No fallback models. Next: parley models fallback MODEL",
				[]string{"MODEL"}, func(i int) []string { return []string{w.FallbackModels[i]} })
		}
		if len(args) > 0 && none {
			return usageError(cmd, "MODEL and --none exclude each other.", "--none removes all fallback models.")
		}
		list := append([]string{}, args...)
		if _, err := a.UpdateWorkspace(ctx, client.WorkspaceChange{FallbackModels: &list}, ""); err != nil {
			return err
		}
		if none {
			return c.printDone(object{"fallback_models": list}, "Removed the fallback models.")
		}
		return c.printDone(object{"fallback_models": list}, "The fallback models are %s.", strings.Join(list, ", "))
	})
	workspaceFlag(cmd)
	cmd.Flags().BoolVar(&none, "none", false, "remove the fallback models")
	return cmd
}
