package cli

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/parley-server/parley/internal/store/skill"
	"github.com/spf13/cobra"
)

// skillShown is a skill in --json.
type skillShown struct {
	Name        string        `json:"name"`
	Status      skill.Status  `json:"status"`
	Version     int           `json:"version"`
	Newest      int           `json:"newest_version"`
	Description string        `json:"description"`
	Inputs      []skill.Input `json:"inputs"` // null: it accepts any
	CreatedAt   time.Time     `json:"created_at"`
	UpdatedAt   time.Time     `json:"updated_at"`
}

func (c *command) skillsList() *cobra.Command {
	return withWorkspace(&cobra.Command{
		Use:   "list",
		Short: "list skills",
		Example: `  parley skills list
  parley skills list --json`,
		Args: nothing,
		RunE: c.inWorkspace(func(ctx context.Context, a *admin, _ []string) error {
			list, err := a.Skills.List(ctx, a.Workspace.ID)
			if err != nil {
				return err
			}
			shown := make([]skillShown, len(list))
			for i, e := range list {
				shown[i] = skillShown{
					Name: e.Name, Status: e.Status, Version: e.Version, Newest: e.Newest, Description: e.Description,
					Inputs: inputsOf(e.Contract), CreatedAt: e.CreatedAt, UpdatedAt: e.UpdatedAt,
				}
			}
			return c.printList(shown, len(list), "No skills. Make one: parley skills create NAME, then parley skills push NAME",
				[]string{"NAME", "STATUS", "VERSION", "INPUTS", "CHANGED", "DESCRIPTION"}, func(i int) []string {
					e := list[i]
					version := strconv.Itoa(e.Version)
					if e.Newest > e.Version {
						version += fmt.Sprintf(" (of %d)", e.Newest)
					}
					return []string{e.Name, string(e.Status), version, inputNames(e.Contract), formatDay(&e.UpdatedAt), shortText(e.Description, 60)}
				})
		}),
	})
}

func inputsOf(contract *skill.Contract) []skill.Input {
	if contract == nil {
		return nil
	}
	return contract.Inputs
}

// inputNames returns the inputs for a table; a star marks the required ones.
func inputNames(contract *skill.Contract) string {
	if contract == nil {
		return "any"
	}
	names := make([]string, len(contract.Inputs))
	for i, in := range contract.Inputs {
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
		RunE: c.inWorkspace(func(ctx context.Context, a *admin, args []string) error {
			if history {
				return c.skillHistory(ctx, a, args[0])
			}
			v, err := a.Skills.Get(ctx, a.Workspace.ID, args[0], version)
			if err != nil {
				return err
			}
			return c.printText(v.Document, versionShown{
				Name: v.Name, Status: v.Status, Version: v.Version, Active: v.Active, Description: v.Description,
				Inputs: inputsOf(v.Contract), Document: v.Document, CreatedAt: v.CreatedAt,
			})
		}),
	}
	cmd.Flags().IntVar(&version, "version", 0, "which one; 0 is the newest")
	cmd.Flags().BoolVar(&history, "history", false, "what was done to it, by whom and when")
	cmd.MarkFlagsMutuallyExclusive("version", "history")
	workspaceFlag(cmd)
	return cmd
}

// versionShown is a version of a skill in --json.
type versionShown struct {
	Name        string        `json:"name"`
	Status      skill.Status  `json:"status"` // the status of the skill
	Version     int           `json:"version"`
	Active      bool          `json:"active"` // this version runs
	Description string        `json:"description"`
	Inputs      []skill.Input `json:"inputs"` // null: it accepts any
	Document    string        `json:"document"`
	CreatedAt   time.Time     `json:"created_at"`
}

// changeShown is a change in --json.
type changeShown struct {
	Action  string    `json:"action"`
	Version *int      `json:"version"`
	Actor   string    `json:"actor"`
	At      time.Time `json:"at"`
}

func (c *command) skillHistory(ctx context.Context, a *admin, name string) error {
	changes, err := a.Skills.History(ctx, a.Workspace.ID, name)
	if err != nil {
		return err
	}
	shown := make([]changeShown, len(changes))
	for i, ch := range changes {
		shown[i] = changeShown(ch)
	}
	return c.printList(shown, len(changes), "", []string{"WHEN", "ACTION", "VERSION", "BY"}, func(i int) []string {
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
		RunE: c.inWorkspace(func(ctx context.Context, a *admin, args []string) error {
			p, err := a.Skills.Publish(ctx, a.Workspace.ID, args[0], version, c.actorName())
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
		RunE: c.inWorkspace(func(ctx context.Context, a *admin, args []string) error {
			if err := a.Skills.Archive(ctx, a.Workspace.ID, args[0], c.actorName()); err != nil {
				return err
			}
			return c.printDone(object{"name": args[0]}, "Archived %s.", plainLine(args[0]))
		}),
	})
}
