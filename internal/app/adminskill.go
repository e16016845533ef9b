package app

import (
	"context"

	"github.com/parley-server/parley/internal/store/skill"
)

// PushSkill stores a skill in a workspace.
func (a *Admin) PushSkill(ctx context.Context, workspace string, up skill.Upload) (skill.Pushed, error) {
	w, err := a.Workspaces.Find(ctx, workspace)
	if err != nil {
		return skill.Pushed{}, err
	}
	return a.Skills.Push(ctx, w.ID, up)
}

// PublishSkill lets a version of a skill run; 0 is the newest.
func (a *Admin) PublishSkill(ctx context.Context, workspace, name string, version int, by string) (skill.Pushed, error) {
	w, err := a.Workspaces.Find(ctx, workspace)
	if err != nil {
		return skill.Pushed{}, err
	}
	return a.Skills.Publish(ctx, w.ID, name, version, by)
}

// ArchiveSkill lets no version of a skill run.
func (a *Admin) ArchiveSkill(ctx context.Context, workspace, name, by string) error {
	w, err := a.Workspaces.Find(ctx, workspace)
	if err != nil {
		return err
	}
	return a.Skills.Archive(ctx, w.ID, name, by)
}

// Skill reads a version of a skill; 0 is the newest.
func (a *Admin) Skill(ctx context.Context, workspace, name string, version int) (skill.Version, error) {
	w, err := a.Workspaces.Find(ctx, workspace)
	if err != nil {
		return skill.Version{}, err
	}
	return a.Skills.Get(ctx, w.ID, name, version)
}

// ListSkills lists a workspace's skills.
func (a *Admin) ListSkills(ctx context.Context, workspace string) ([]skill.Entry, error) {
	w, err := a.Workspaces.Find(ctx, workspace)
	if err != nil {
		return nil, err
	}
	return a.Skills.List(ctx, w.ID)
}

// SkillHistory tells what was done to a skill.
func (a *Admin) SkillHistory(ctx context.Context, workspace, name string) ([]skill.Change, error) {
	w, err := a.Workspaces.Find(ctx, workspace)
	if err != nil {
		return nil, err
	}
	return a.Skills.History(ctx, w.ID, name)
}
