package cli

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/parley-server/parley/client"
)

func (c *command) workspaceCommand() *cobra.Command {
	return groupOf(&cobra.Command{
		Use:     "workspace",
		Aliases: []string{"workspaces"},
		Short:   "manage workspaces",
		Example: `  parley workspace create sales --instructions @sales.md
  parley workspace update sales --model openai/gpt-5-mini --max-running 32
  parley workspace list`,
	}, c.workspaceCreate(), c.workspaceShow(), c.workspaceUpdate(), c.workspaceList(), c.workspacePause(), c.workspaceResume(),
		c.workspaceDelete())
}

func (c *command) workspaceCreate() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "create NAME",
		Short: "create a workspace",
		Example: `  parley workspace create sales
  parley workspace create sales --name "Sales team" --instructions "You help the sales team."
  parley workspace create sales --key > sales.key`,
		Args: exactArguments("NAME"),
	}
	change := c.changeFlags(cmd)
	var key bool
	cmd.Flags().BoolVar(&key, "key", false, "create a key for its administrator and print it once")
	cmd.RunE = c.administerServer(func(ctx context.Context, a *administration, args []string) error {
		set, err := change()
		if err != nil {
			return err
		}
		w, err := a.CreateWorkspace(ctx, args[0], client.NewWorkspaceOptions{Settings: set, NoKey: !key})
		if err != nil {
			return err
		}
		if key {
			return c.printOnce(w.AdminKey.Text, object{"workspace": shownWorkspace(w.Workspace), "admin_key": w.AdminKey},
				"Created the workspace %s (%s) with the key %s.", w.Slug, w.ID, w.AdminKey.ID)
		}
		return c.printNamed(w.Slug, shownWorkspace(w.Workspace),
			"Created the workspace %s (%s). Next: parley keys create --workspace %[1]s --name first", w.Slug, w.ID)
	})
	return cmd
}

func (c *command) workspaceShow() *cobra.Command {
	return &cobra.Command{
		Use:   "show NAME",
		Short: "show a workspace with its limits and instructions",
		Example: `  parley workspace show sales
  parley workspace show sales --json`,
		Args: exactArguments("NAME"),
		RunE: c.administerNamed(func(ctx context.Context, a *administration, _ []string) error {
			w, err := a.Workspace(ctx)
			if err != nil {
				return err
			}
			limits, err := a.Limits(ctx)
			if err != nil {
				return err
			}
			shown := shownWorkspace(w)
			shown.Storage = &limits.Storage
			if c.json {
				return c.printData(shown)
			}
			for _, line := range shown.printedLines() {
				fmt.Fprintf(c.Stdout, "%-21s%s\n", line[0], plainLine(line[1]))
			}
			if w.Instructions != "" {
				fmt.Fprintf(c.Stdout, "\n%s\n", plainLines(w.Instructions))
			}
			return nil
		}),
	}
}

// printedLines returns the printed members of a workspace, without its instructions.
func (w workspaceShown) printedLines() [][2]string {
	return [][2]string{
		{"name", w.Slug}, {"title", w.Name}, {"id", w.ID}, {"model", w.modelName()},
		{"max response seconds", strconv.Itoa(w.MaxResponseSeconds)}, {"max turns", strconv.Itoa(w.MaxTurns)},
		{"max running", strconv.Itoa(w.MaxRunning)},
		{"history tokens", historyLimit(w.HistoryTokens)}, {"messages per minute", keyLimit(w.MessagesPerMinute)},
		{"calls per minute", keyLimit(w.CallsPerMinute)}, {"open streams", keyLimit(w.OpenStreams)}, {"storage", w.storageText()},
		{"separate approver", yesNo(w.SeparateApprover)}, {"admin patterns", yesNo(w.AdminPatterns)},
		{"caller instructions", yesNo(w.CallerInstructions)}, {"caller parameters", yesNo(w.CallerParameters)},
		{"reasoning summaries", yesNo(w.ReasoningSummaries)}, {"search language", w.SearchLanguage},
		{"paused", yesNo(w.PausedAt != nil)},
		{"created", formatDay(&w.CreatedAt)}, {"updated", formatDay(&w.UpdatedAt)},
	}
}

// modelName returns the workspace's model, or "default" for the server's own.
func (w workspaceShown) modelName() string {
	if w.Model == nil {
		return "default"
	}
	return *w.Model
}

func (c *command) workspaceUpdate() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "update NAME",
		Short: "update a workspace",
		Example: `  parley workspace update sales --model anthropic/claude-sonnet-4-5
  parley workspace update sales --max-turns 20 --messages-per-minute 600 --storage-quota 51200
  parley workspace update sales --separate-approver --admin-patterns`,
		Args: exactArguments("NAME"),
	}
	change := c.changeFlags(cmd)
	var set client.WorkspaceChange
	cmd.PreRunE = func(*cobra.Command, []string) (err error) {
		if set, err = change(); err == nil && set == (client.WorkspaceChange{}) {
			return usageError(cmd, "No change is given.", "No flag is set.")
		}
		return err
	}
	cmd.RunE = c.administerNamedOutside(func(ctx context.Context, a *administration, _ []string) error {
		w, err := a.UpdateWorkspace(ctx, set, "")
		if err != nil {
			return err
		}
		return c.printDone(shownWorkspace(w), "Updated the workspace %s.", w.Slug)
	})
	return cmd
}

// changeFlags adds the flags for the settings of a workspace. change returns those that are given.
func (c *command) changeFlags(cmd *cobra.Command) (change func() (client.WorkspaceChange, error)) {
	f := cmd.Flags()
	name := f.String("name", "", "title of the workspace")
	instructions := f.String("instructions", "", "instructions for the agent; @FILE reads a file")
	file := f.String("instructions-file", "", "file with the instructions")
	model := f.String("model", "", "openai/NAME, anthropic/NAME, ollama/NAME or builtin/guide; \"\" is the server's own")
	seconds := f.Int("max-response-seconds", 600, "longest duration of a turn, 1 to 3600")
	turns := f.Int("max-turns", 50, "model calls in a turn, 1 to 200")
	running := f.Int("max-running", 64, "turns of the workspace at once, 1 to 10000")
	storage := f.Int("storage-quota", 10240, "MiB of files, folders and documents of the workspace; 0: no limit")
	history := f.Int("history-tokens", -1, "tokens of earlier turns that the model receives; -1: as many as fit its window")
	messages := f.Int("messages-per-minute", -1, "messages of one key in a minute; 0: no limit, -1: the server's own")
	calls := f.Int("calls-per-minute", -1, "other calls of one key in a minute; 0: no limit, -1: the server's own")
	streams := f.Int("open-streams", -1, "streams of one key at once; 0: no limit, -1: the server's own")
	separate := f.Bool("separate-approver", false, "reject an approval by the key that sent the message")
	patterns := f.Bool("admin-patterns", false, "reject allow-list patterns in approvals; add them with parley allowlist create")
	instruct := f.Bool("caller-instructions", true, "accept instructions of callers, such as system messages of OpenAI clients")
	parameters := f.Bool("caller-parameters", true, "accept parameters of the model from callers, such as temperature")
	reasoning := f.Bool("reasoning-summaries", false, "request, store and send summaries of the model's reasoning")
	language := f.String("search-language", "english", "language of the documents for the search, such as german; simple: none")
	maybeEmpty(cmd, "name", "instructions", "model")
	cmd.MarkFlagsMutuallyExclusive("instructions", "instructions-file")
	return func() (set client.WorkspaceChange, err error) {
		if f.Changed("instructions") {
			if *instructions, err = c.flagArgument(*instructions); err != nil {
				return set, err
			}
			set.Instructions = instructions
		}
		if f.Changed("instructions-file") {
			text, err := os.ReadFile(c.resolvePath(*file))
			if err != nil {
				return set, unreadableError(err)
			}
			set.Instructions = new(string(text))
		}
		copyGiven(cmd, "name", &set.Name, name)
		copyGiven(cmd, "model", &set.Model, model)
		copyGiven(cmd, "max-response-seconds", &set.MaxResponseSeconds, seconds)
		copyGiven(cmd, "max-turns", &set.MaxTurns, turns)
		copyGiven(cmd, "max-running", &set.MaxRunning, running)
		copyGiven(cmd, "history-tokens", &set.HistoryTokens, history)
		if f.Changed("storage-quota") {
			set.StorageQuota = new(int64(*storage) << 20)
		}
		for _, l := range []struct {
			flag  string
			value int
		}{{"messages-per-minute", *messages}, {"calls-per-minute", *calls}, {"open-streams", *streams}} {
			if l.value < -1 {
				return set, usageError(cmd, fmt.Sprintf("--%s %d is not a limit.", l.flag, l.value),
					"Give a number from 0, where 0 is no limit, or -1 for the server's own.")
			}
		}
		copyGiven(cmd, "messages-per-minute", &set.MessagesPerMinute, messages)
		copyGiven(cmd, "calls-per-minute", &set.CallsPerMinute, calls)
		copyGiven(cmd, "open-streams", &set.OpenStreams, streams)
		copyGiven(cmd, "separate-approver", &set.SeparateApprover, separate)
		copyGiven(cmd, "admin-patterns", &set.AdminPatterns, patterns)
		copyGiven(cmd, "caller-instructions", &set.CallerInstructions, instruct)
		copyGiven(cmd, "caller-parameters", &set.CallerParameters, parameters)
		copyGiven(cmd, "reasoning-summaries", &set.ReasoningSummaries, reasoning)
		copyGiven(cmd, "search-language", &set.SearchLanguage, language)
		return set, nil
	}
}

// copyGiven copies the value of a flag if the flag is given.
func copyGiven[T any](cmd *cobra.Command, flag string, to **T, value *T) {
	if cmd.Flags().Changed(flag) {
		*to = value
	}
}

func (c *command) workspaceDelete() *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use:   "delete NAME",
		Short: "delete a workspace with its sessions, files and keys permanently",
		Example: `  parley workspace delete sales
  parley workspace delete sales --yes      without asking`,
		Long: `Deletes a workspace. On the database it needs no running server. Its keys are revoked, running turns
are canceled, and its sessions, files, documents, skills, secrets, rules and callbacks are deleted.
The log keeps the kinds and times of events, without content, until the audit retention ends. After
an error, run the command again.`,
		Args: exactArguments("NAME"),
		RunE: c.administerServer(func(ctx context.Context, a *administration, args []string) error {
			w, err := findWorkspace(ctx, a, args[0])
			if err != nil {
				return err
			}
			if err := c.requireConsent(yes, fmt.Sprintf("Delete the workspace %s (%q) with all its sessions, files and keys permanently?",
				w.Slug, w.Name), "Nothing was deleted."); err != nil {
				return err
			}
			done, err := a.DeleteWorkspace(ctx, w.ID)
			if err != nil {
				return err
			}
			sessions, canceled := done.Sessions, done.Canceled
			return c.printDone(object{"workspace_id": w.ID, "slug": w.Slug, "sessions": sessions, "canceled_turns": canceled},
				"Canceled %d %s. Deleted the workspace %s and its %d %s.", canceled, pluralize(canceled, "turn", "turns"), w.Slug, sessions,
				pluralize(sessions, "session", "sessions"))
		}),
	}
	yesFlag(cmd, &yes)
	return cmd
}

// findWorkspace finds a workspace of the server by its name or id.
func findWorkspace(ctx context.Context, a *administration, ref string) (client.Workspace, error) {
	all, err := a.Workspaces(ctx)
	if err != nil {
		return client.Workspace{}, err
	}
	if i := slices.IndexFunc(all, func(w client.Workspace) bool { return w.Slug == ref || w.ID == ref }); i >= 0 {
		return all[i], nil
	}
	return client.Workspace{}, &problem{Exit: exitUsage, Code: "WORKSPACE_NOT_FOUND",
		What: fmt.Sprintf("Workspace %.80q does not exist. `parley workspace list` shows the names.", ref),
		Do:   "Correct the command and run it again."}
}

func (c *command) workspaceList() *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "list workspaces with their models and limits",
		Example: `  parley workspace list
  parley workspace list --json`,
		Args: nothing,
		RunE: c.administerServer(func(ctx context.Context, a *administration, _ []string) error {
			all, err := a.Workspaces(ctx)
			if err != nil {
				return err
			}
			shown := make([]workspaceShown, len(all))
			for i, w := range all {
				shown[i] = shownWorkspace(w)
			}
			return c.printList(shown, len(all), "No workspaces yet. Create one: parley workspace create NAME",
				[]string{"NAME", "TITLE", "MODEL", "SECONDS", "TURNS", "RUNNING", "STORAGE", "HISTORY",
					"MESSAGES/MIN", "CALLS/MIN", "STREAMS", "SEPARATE-APPROVER", "ADMIN-PATTERNS", "ID", "CREATED"}, func(i int) []string {
					w := shown[i]
					return []string{w.Slug, shortText(w.Name, 40), w.modelName(), strconv.Itoa(w.MaxResponseSeconds),
						strconv.Itoa(w.MaxTurns), strconv.Itoa(w.MaxRunning),
						w.storageText(), historyLimit(w.HistoryTokens), keyLimit(w.MessagesPerMinute), keyLimit(w.CallsPerMinute), keyLimit(w.OpenStreams),
						yesNo(w.SeparateApprover), yesNo(w.AdminPatterns), w.ID, formatDay(&w.CreatedAt)}
				})
		}),
	}
}

// keyLimit shows a limit of each key, or "default" for the server's own.
func keyLimit(n *int) string {
	switch {
	case n == nil:
		return "default"
	case *n == 0:
		return "no limit"
	}
	return strconv.Itoa(*n)
}

// historyLimit shows the tokens of earlier turns, or "window" for as many as fit the model's window.
func historyLimit(n *int) string {
	if n == nil {
		return "window"
	}
	return strconv.Itoa(*n)
}

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

// workspaceShown is a workspace in --json.
type workspaceShown struct {
	ID                 string  `json:"workspace_id"`
	Slug               string  `json:"slug"`
	Name               string  `json:"name"`
	Instructions       string  `json:"instructions"`
	Model              *string `json:"model"`
	MaxResponseSeconds int     `json:"max_response_seconds"`
	MaxTurns           int     `json:"max_turns"`
	MaxRunning         int     `json:"max_running"`
	HistoryTokens      *int    `json:"history_tokens"`      // null: as many as fit the model's window
	MessagesPerMinute  *int    `json:"messages_per_minute"` // null: the server's own, like the next two
	CallsPerMinute     *int    `json:"calls_per_minute"`
	OpenStreams        *int    `json:"open_streams"`
	StorageQuota       int64   `json:"storage_quota"` // bytes; 0: none

	SeparateApprover bool `json:"separate_approver"` // the key that sent a message cannot allow its calls
	AdminPatterns    bool `json:"admin_patterns"`    // decisions add no patterns to the allow-list

	CallerInstructions bool `json:"caller_instructions"` // messages may have instructions of the caller
	CallerParameters   bool `json:"caller_parameters"`   // messages may have parameters of the model

	ReasoningSummaries bool `json:"reasoning_summaries"` // of the model

	SearchLanguage string `json:"search_language"` // of the documents

	Storage *client.Storage `json:"storage,omitempty"` // what is stored, in bytes

	PausedAt *time.Time `json:"paused_at"` // null: its agents run

	CreatedAt time.Time `json:"created_at"`
	UpdatedAt time.Time `json:"updated_at"`
}

// storageText shows what is stored of the quota, such as "12.3 of 10240 MiB".
func (w workspaceShown) storageText() string {
	used := strconv.FormatFloat(float64(w.Storage.Files+w.Storage.Folders+w.Storage.Documents)/(1<<20), 'f', 1, 64)
	if w.StorageQuota == 0 {
		return used + " MiB"
	}
	return fmt.Sprintf("%s of %d MiB", used, w.StorageQuota>>20)
}

func shownWorkspace(w client.Workspace) workspaceShown {
	return workspaceShown{
		ID: w.ID, Slug: w.Slug, Name: w.Name, Instructions: w.Instructions, Model: w.Model,
		MaxResponseSeconds: w.MaxResponseSeconds, MaxTurns: w.MaxTurns, MaxRunning: w.MaxRunning, HistoryTokens: w.HistoryTokens,
		MessagesPerMinute: w.MessagesPerMinute, CallsPerMinute: w.CallsPerMinute, OpenStreams: w.OpenStreams, StorageQuota: w.StorageQuota,
		SeparateApprover: w.SeparateApprover, AdminPatterns: w.AdminPatterns, CallerInstructions: w.CallerInstructions,
		CallerParameters: w.CallerParameters, ReasoningSummaries: w.ReasoningSummaries, SearchLanguage: w.SearchLanguage, PausedAt: w.PausedAt,
		CreatedAt: w.CreatedAt, UpdatedAt: w.UpdatedAt, Storage: w.Storage,
	}
}
