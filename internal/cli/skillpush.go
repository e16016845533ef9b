package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/parley-server/parley/client"
	"github.com/parley-server/parley/internal/store/skill"
)

func (c *command) skillsPush() *cobra.Command {
	var draft bool
	cmd := &cobra.Command{
		Use:   "push DIR…",
		Short: "upload and publish skills",
		Example: `  parley skills push monthly_report
  parley skills push skills --draft`,
		Long: `DIR is a skill, with a SKILL.md, or a folder of skills. The command checks all skills before it
stores the first. An unchanged skill gets no new version.`,
		Args: atLeast("DIR"),
		RunE: c.administer(func(ctx context.Context, a *administration, args []string) error {
			files, err := c.skillFiles(args)
			if err != nil {
				return err
			}
			if wrong := lintSkills(files); len(wrong) > 0 {
				return &problem{Exit: exitUsage, Code: "INVALID_SKILL", What: "Nothing was pushed.", Why: strings.Join(wrong, "\n"),
					Do: "Correct it and push again."}
			}
			var pushed []pushedSkill
			for _, f := range files {
				p, err := pushSkill(ctx, a, f, draft)
				if err != nil {
					return err
				}
				if pushed = append(pushed, p); c.json {
					continue
				}
				c.reportPush(p)
				if len(f.beside) > 0 {
					fmt.Fprintf(c.Stderr, "  Only its %s was pushed, not %s.\n", skill.File, plainLine(strings.Join(f.beside, ", ")))
				}
			}
			if c.json {
				return c.printData(pushed)
			}
			return nil
		}),
	}
	cmd.Flags().BoolVar(&draft, "draft", false, "store the version without publishing it")
	workspaceFlag(cmd)
	return cmd
}

// pushedSkill is the result of a push in --json.
type pushedSkill struct {
	Name    string `json:"name"`
	Version int    `json:"version"`
	Stored  bool   `json:"stored"` // false: the newest version is the same
	Active  bool   `json:"active"` // this version runs
}

// pushSkill stores a skill without problems.
func pushSkill(ctx context.Context, a *administration, f skillFile, draft bool) (pushedSkill, error) {
	k, _ := skill.Parse(f.document)
	newest, err := a.Skill(ctx, k.Name, 0)
	if err != nil && !isNotFound(err) {
		return pushedSkill{}, err
	}
	v, err := a.PutSkill(ctx, k.Name, f.document, draft, "")
	return pushedSkill{v.Name, v.Version, v.Version > newest.Version, v.Active}, err
}

func (c *command) reportPush(p pushedSkill) {
	what := "Pushed"
	if !p.Stored {
		what = "Unchanged:"
	}
	state := "a draft; publish it with parley skills publish " + p.Name
	if p.Active {
		state = "active"
	}
	fmt.Fprintf(c.Stderr, "%s %s, version %d, %s.\n", what, p.Name, p.Version, state)
}

// actorName returns the user of the command line, as far as it is known.
func (c *command) actorName() string {
	return strings.TrimSuffix("cli:"+plainLine(cmp.Or(c.envValue("USER"), c.envValue("LOGNAME"), c.envValue("USERNAME"),
		c.systemUser().Name)), ":")
}

func (c *command) skillsPull() *cobra.Command {
	var to string
	var force bool
	cmd := &cobra.Command{
		Use:   "pull [NAME]…",
		Short: "download skills into folders",
		Example: `  parley skills pull --to skills
  parley skills pull monthly_report --force`,
		Args: cobra.ArbitraryArgs,
		RunE: c.administer(func(ctx context.Context, a *administration, names []string) error {
			if len(names) == 0 {
				list, err := a.Skills(ctx)
				if err != nil {
					return err
				}
				for _, e := range list {
					if e.Status != string(skill.Archived) {
						names = append(names, e.Name)
					}
				}
			}
			written := []object{}
			for _, name := range names {
				v, err := a.Skill(ctx, name, 0)
				if err != nil {
					return err
				}
				file, err := c.pullSkill(v, to, force)
				if err != nil {
					return err
				}
				written = append(written, object{"file": file, "name": v.Name, "version": v.Version})
			}
			if c.json {
				return c.printData(written)
			}
			return nil
		}),
	}
	cmd.Flags().StringVar(&to, "to", "", "the folder to write to")
	cmd.Flags().BoolVar(&force, "force", false, "overwrite changed files")
	workspaceFlag(cmd)
	return cmd
}

// pullSkill writes one skill into its folder and returns the name of the file.
func (c *command) pullSkill(v client.SkillVersion, to string, force bool) (file string, err error) {
	file = filepath.Join(to, v.Name, skill.File)
	there, err := os.ReadFile(c.resolvePath(file))
	switch {
	case err == nil && string(there) == v.Document:
		c.printNote("Unchanged: %s, version %d.", plainLine(file), v.Version)
		return file, nil
	case err == nil && !force:
		return "", &problem{Exit: exitUsage, Code: "USAGE", What: file + " differs from version " + fmt.Sprint(v.Version) + ".",
			Why: "pull does not overwrite changes.", Do: "Push it, or add --force to lose it."}
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return "", unreadableError(err)
	}
	if err := os.MkdirAll(filepath.Dir(c.resolvePath(file)), 0o755); err != nil {
		return "", unwritableError(err)
	}
	if err := os.WriteFile(c.resolvePath(file), []byte(v.Document), 0o644); err != nil {
		return "", unwritableError(err)
	}
	c.printNote("Wrote %s, version %d.", plainLine(file), v.Version)
	return file, nil
}
