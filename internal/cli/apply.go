package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/parley-server/parley/internal/manifest"
)

// applyFlags are the flags of parley apply.
type applyFlags struct {
	file               string
	yes, prune, dryRun bool
}

func (c *command) applyCommand() *cobra.Command {
	var f applyFlags
	var schema bool
	cmd := &cobra.Command{
		Use:   "apply",
		Short: "apply a file with the configuration of a workspace",
		Example: `  parley apply -f parley.yaml
  parley apply -f parley.yaml --dry-run          print the differences and change nothing
  parley apply -f parley.yaml --prune --yes      delete what the file lacks, without asking`,
		Long: `Compares a workspace with a file, prints the differences, asks, and makes the changes. A section
that the file lacks is not touched. An object that a section lacks stays, unless --prune is given.
parley export config writes such a file. Values of secrets are not part of it.

Before it asks, the server checks every change without making it, and connects to new tool servers: if
one would be rejected, nothing is changed.

If the configuration changes before you answer, nothing is changed. A change that another
administrator makes at the same time is not overwritten: the command stops there.`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usageError(cmd, fmt.Sprintf("%q is too much.", args[0]), "Use -f "+args[0]+".")
			}
			return nil
		},
	}
	cmd.PreRunE = func(*cobra.Command, []string) error {
		if f.file == "" && !schema {
			return usageError(cmd, "-f is missing.", "It names the file, such as parley.yaml; - is stdin.")
		}
		return nil
	}
	work := c.administerOutside(func(ctx context.Context, a *administration, _ []string) error { return c.applyFile(ctx, a, f) })
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if schema {
			_, err := io.WriteString(c.Stdout, manifest.Schema)
			return err
		}
		return work(cmd, args)
	}
	workspaceFlag(cmd)
	cmd.Flags().StringVarP(&f.file, "file", "f", "", "the file; - reads stdin")
	_ = cmd.MarkFlagFilename("file", "yaml", "yml")
	cmd.Flags().BoolVar(&f.prune, "prune", false, "delete objects that a section of the file lacks")
	cmd.Flags().BoolVar(&f.dryRun, "dry-run", false, "print the differences only")
	cmd.Flags().BoolVar(&schema, "schema", false, "print the JSON Schema of the file")
	yesFlag(cmd, &f.yes)
	return cmd
}

func (c *command) applyFile(ctx context.Context, a *administration, f applyFlags) error {
	file, err := c.readManifest(f.file)
	if err != nil {
		return err
	}
	plan, err := manifest.NewPlan(ctx, a.Admin, file, f.prune)
	if err != nil {
		return err
	}
	result := object{"workspace": a.slug, "changes": append([]manifest.Change{}, plan.Changes...), "applied": false,
		"secrets_to_set": append([]string{}, plan.Unset...), "not_in_file": plan.Unmanaged}
	c.printPlan(a, plan)
	if len(plan.Changes) == 0 {
		return c.printDone(result, "Nothing to change: the workspace %s equals %s.", a.slug, plainLine(f.file))
	}
	count := fmt.Sprintf("%d %s", len(plan.Changes), pluralize(len(plan.Changes), "change", "changes"))
	rejected, err := plan.Check(ctx, a.Admin)
	if err != nil {
		return err
	}
	if len(rejected) > 0 {
		return rejectedPlan(rejected, count)
	}
	if f.dryRun {
		return c.printDone(result, "%s to %s. Nothing was changed.", count, a.slug)
	}
	if f.file == "-" && !f.yes {
		return &problem{Exit: exitUsage, Code: "NOT_CONFIRMED", What: "Nothing was changed.",
			Why: "The file is on stdin, so the command cannot ask.", Do: "Use --yes."}
	}
	if err := c.requireConsent(f.yes, fmt.Sprintf("Make %s to the workspace %s?", count, a.slug), "Nothing was changed."); err != nil {
		return err
	}
	if err := plan.Apply(ctx, a.Admin, func(ch manifest.Change) {
		c.printNote("%s %s", pastAction[ch.Action], plainLine(ch.Title()))
	}); err != nil {
		return explainApply(err)
	}
	result["applied"] = true
	return c.printDone(result, "Made %s to the workspace %s.", count, a.slug)
}

// rejectedPlan lists the changes that the server would reject.
func rejectedPlan(rejected []manifest.Rejection, count string) error {
	lines := make([]string, len(rejected))
	for i, r := range rejected {
		what := explainError(explainAdminError(r.Err)).What
		if own, ok := errors.AsType[*manifest.Error](r.Err); ok {
			what = own.Message
		}
		lines[i] = r.At.Title() + ": " + what
	}
	return &problem{Exit: exitUsage, Code: "REJECTED", What: strings.Join(lines, "\n"),
		Why: fmt.Sprintf("Nothing was changed: %d of %s would be rejected.", len(rejected), count),
		Do:  "Correct the file and run parley apply again."}
}

var pastAction = map[manifest.Action]string{manifest.Create: "Created", manifest.Update: "Updated", manifest.Delete: "Deleted"}

// printPlan prints the differences and, on stderr, what the file does not decide.
func (c *command) printPlan(a *administration, plan *manifest.Plan) {
	if c.json {
		return
	}
	for _, ch := range plan.Changes {
		for line := range strings.Lines(ch.Diff()) {
			fmt.Fprintln(c.Stdout, c.colourDiff(escapeControls(strings.TrimSuffix(line, "\n"))))
		}
	}
	if plan.Unmanaged > 0 {
		c.printNote("The workspace has %d %s that the file lacks; --prune deletes what can be deleted.", plan.Unmanaged,
			pluralize(plan.Unmanaged, "object", "objects"))
	}
	for _, name := range plan.Unset {
		host := " --host HOST"
		if plan.IsRegistered(name) {
			host = ""
		}
		c.printNote("The secret %s is to be set: parley secrets set %[1]s%s --workspace %s", name, host, a.slug)
	}
}

// colourDiff colors a line of a unified diff on a terminal.
func (c *command) colourDiff(line string) string {
	if !c.hasColoursOn(c.Stdout) || line == "" {
		return line
	}
	switch code := map[byte]string{'+': "32", '-': "31", '@': "36"}[line[0]]; {
	case strings.HasPrefix(line, "--- ") || strings.HasPrefix(line, "+++ "):
		return "\x1b[1m" + line + "\x1b[0m"
	case code != "":
		return "\x1b[" + code + "m" + line + "\x1b[0m"
	}
	return line
}

// explainApply describes why the changes stopped.
func explainApply(err error) error {
	stopped, isStopped := errors.AsType[*manifest.Stopped](err)
	p := &problem{Exit: exitFailed, Code: "CONFIGURATION_CHANGED", What: "Another administrator has changed the configuration.",
		Why: "It is not what the differences were computed from. Nothing was changed.", Do: "Run parley apply again."}
	switch {
	case !manifest.IsConflict(err) && !isStopped:
		return err
	case !manifest.IsConflict(err):
		p = explainError(explainAdminError(stopped.Err))
		p.What = stopped.At.Title() + ": " + p.What
		p.Why = strings.TrimSpace(p.Why + " " + progressOf(stopped))
		p.Do = "Run parley apply again: it continues with the rest."
	case isStopped:
		p.Why = fmt.Sprintf("The %s was not overwritten. %s", stopped.At.Title(), progressOf(stopped))
		p.Do = "Run parley apply again: it continues with the rest."
	}
	return p
}

// progressOf names the objects that were written before the changes stopped.
func progressOf(s *manifest.Stopped) string {
	names := make([]string, len(s.Made))
	for i, c := range s.Made {
		names[i] = plainLine(c.Title())
	}
	text := fmt.Sprintf("%d of %d changes were made", len(s.Made), s.Of)
	if len(names) > 0 {
		text += ": " + strings.Join(names, ", ")
	}
	return text + "."
}

// readManifest reads a file with the files that it names, which are in its folder or below.
func (c *command) readManifest(name string) (manifest.File, error) {
	folder := c.Dir
	var source []byte
	var err error
	if name == "-" {
		if !isFed(c.Stdin) {
			return manifest.File{}, &problem{Exit: exitUsage, Code: "USAGE", What: "The file is missing.",
				Why: "-f - reads stdin, and nothing is piped in.", Do: "Name a file: parley apply -f parley.yaml"}
		}
		source, err = io.ReadAll(c.Stdin)
	} else {
		folder = filepath.Dir(c.resolvePath(name))
		source, err = os.ReadFile(c.resolvePath(name))
	}
	if err != nil {
		return manifest.File{}, unreadableError(err)
	}
	root, err := os.OpenRoot(folder)
	if err != nil {
		return manifest.File{}, unreadableError(err)
	}
	defer root.Close()
	f, err := manifest.Parse(source, root.ReadFile, func(folder string) ([]string, error) { return filesBelow(root, folder) })
	if wrong, ok := errors.AsType[*manifest.Error](err); ok {
		return f, &problem{Exit: exitUsage, Code: "INVALID_FILE", What: plainLine(name) + " is not a configuration.", Why: wrong.Message,
			Do: "Correct it; parley apply --schema prints its JSON Schema."}
	}
	return f, err
}

// filesBelow lists the files below a folder, without hidden ones.
func filesBelow(root *os.Root, folder string) (files []string, err error) {
	folder = filepath.ToSlash(filepath.Clean(folder))
	err = fs.WalkDir(root.FS(), folder, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case path != folder && strings.HasPrefix(d.Name(), "."):
			if d.IsDir() {
				return fs.SkipDir
			}
		case d.Type().IsRegular():
			files = append(files, strings.TrimPrefix(path, folder+"/"))
		}
		return nil
	})
	return files, err
}

func (c *command) exportCommand() *cobra.Command {
	return groupOf(&cobra.Command{
		Use:     "export",
		Short:   "export the configuration of a workspace",
		Example: "  parley export config > parley.yaml\n  parley export config --documents --workspace sales > sales.yaml",
	}, c.exportConfig())
}

func (c *command) exportConfig() *cobra.Command {
	var documents bool
	cmd := &cobra.Command{
		Use:   "config",
		Short: "export the configuration of a workspace as a file for parley apply",
		Example: `  parley export config > parley.yaml
  parley export config --documents --workspace sales > sales.yaml`,
		Long: `Writes the settings, agents, skills, rules, hosts, secrets without their values and budgets of a
workspace to stdout, as YAML. Drafts, keys, members and sessions are not part of it.`,
		Args: nothing,
		RunE: c.administer(func(ctx context.Context, a *administration, _ []string) error {
			file, _, err := manifest.Read(ctx, a.Admin, documents)
			if err != nil {
				return err
			}
			text, err := file.Encode()
			if err != nil {
				return err
			}
			text = fmt.Sprintf("# The configuration of the Parley workspace %s, without the values of its secrets.\n%s", a.slug, text)
			return c.printText(text, object{"workspace": a.slug, "config": text})
		}),
	}
	workspaceFlag(cmd)
	cmd.Flags().BoolVar(&documents, "documents", false, "with the documents of the workspace")
	return cmd
}
