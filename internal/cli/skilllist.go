package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/parley-server/parley/internal/store/skill"
	"github.com/spf13/cobra"
)

// skillShown is a skill in --json.
type skillShown struct {
	Name        string          `json:"name"`
	Status      string          `json:"status"`
	Version     int             `json:"version"`
	Newest      int             `json:"newest_version"`
	Description string          `json:"description"`
	Inputs      json.RawMessage `json:"inputs"` // null: it accepts any
	CreatedAt   time.Time       `json:"created_at"`
	UpdatedAt   time.Time       `json:"updated_at"`
}

func (c *command) skillsList() *cobra.Command {
	return withWorkspace(&cobra.Command{
		Use:   "list",
		Short: "list skills",
		Example: `  parley skills list
  parley skills list --json`,
		Args: nothing,
		RunE: c.administer(func(ctx context.Context, a *administration, _ []string) error {
			list, err := a.Skills(ctx)
			if err != nil {
				return err
			}
			shown := make([]skillShown, len(list))
			for i, e := range list {
				shown[i] = skillShown{e.Name, e.Status, e.Version, e.Newest, e.Description, e.Inputs, e.CreatedAt, e.UpdatedAt}
			}
			return c.printList(shown, len(list), "No skills. Make one: parley skills create NAME, then parley skills push NAME",
				[]string{"NAME", "STATUS", "VERSION", "INPUTS", "CHANGED", "DESCRIPTION"}, func(i int) []string {
					e := list[i]
					version := strconv.Itoa(e.Version)
					if e.Newest > e.Version {
						version += fmt.Sprintf(" (of %d)", e.Newest)
					}
					return []string{e.Name, e.Status, version, inputNames(e.Inputs), formatDay(&e.UpdatedAt), shortText(e.Description, 60)}
				})
		}),
	})
}

// inputNames returns the inputs for a table; a star marks the required ones.
func inputNames(declared json.RawMessage) string {
	var inputs []skill.Input
	if json.Unmarshal(declared, &inputs) != nil || inputs == nil {
		return "any"
	}
	names := make([]string, len(inputs))
	for i, in := range inputs {
		names[i] = in.Name
		if in.Required {
			names[i] += "*"
		}
	}
	return strings.Join(names, " ")
}

func (c *command) skillsShow() *cobra.Command {
	var version int
	var history bool
	cmd := &cobra.Command{
		Use:   "show NAME",
		Short: "show a skill or its history",
		Example: `  parley skills show monthly_report
  parley skills show monthly_report --version 2 > SKILL.md
  parley skills show monthly_report --history`,
		Args: exactArguments("NAME"),
		RunE: c.administer(func(ctx context.Context, a *administration, args []string) error {
			if history {
				return c.skillHistory(ctx, a, args[0])
			}
			v, err := a.Skill(ctx, args[0], version)
			if err != nil {
				return err
			}
			return c.printText(v.Document, v)
		}),
	}
	cmd.Flags().IntVar(&version, "version", 0, "which one; 0 is the newest")
	cmd.Flags().BoolVar(&history, "history", false, "what was done to it, by whom and when")
	cmd.MarkFlagsMutuallyExclusive("version", "history")
	workspaceFlag(cmd)
	return cmd
}

func (c *command) skillHistory(ctx context.Context, a *administration, name string) error {
	changes, err := a.SkillEvents(ctx, name)
	if err != nil {
		return err
	}
	return c.printList(changes, len(changes), "", []string{"WHEN", "ACTION", "VERSION", "BY"}, func(i int) []string {
		version := ""
		if v := changes[i].Version; v != nil {
			version = strconv.Itoa(*v)
		}
		return []string{formatDay(&changes[i].At), changes[i].Action, version, changes[i].Actor}
	})
}

func (c *command) skillsPublish() *cobra.Command {
	var version int
	cmd := &cobra.Command{
		Use:   "publish NAME",
		Short: "publish a version of a skill",
		Example: `  parley skills publish monthly_report
  parley skills publish monthly_report --version 2     back to an earlier one`,
		Args: exactArguments("NAME"),
		RunE: c.administer(func(ctx context.Context, a *administration, args []string) error {
			p, err := a.PublishSkill(ctx, args[0], version)
			if err != nil {
				return err
			}
			return c.printDone(p, "Version %d of %s is active.", p.Version, p.Name)
		}),
	}
	cmd.Flags().IntVar(&version, "version", 0, "which one; 0 is the newest")
	workspaceFlag(cmd)
	return cmd
}

func (c *command) skillsArchive() *cobra.Command {
	return withWorkspace(&cobra.Command{
		Use:   "archive NAME",
		Short: "archive a skill",
		Example: `  parley skills archive monthly_report
  parley skills archive monthly_report --workspace sales`,
		Args: exactArguments("NAME"),
		RunE: c.administer(func(ctx context.Context, a *administration, args []string) error {
			if err := a.ArchiveSkill(ctx, args[0]); err != nil {
				return err
			}
			return c.printDone(object{"name": args[0]}, "Archived %s.", plainLine(args[0]))
		}),
	})
}
