package admin

import (
	"context"
	"strconv"
	"time"

	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/store/skill"
)

// skillView is a skill in a list, or one version of it with its document.
type skillView struct {
	Name        string        `json:"name"`
	Status      skill.Status  `json:"status"`
	Version     int           `json:"version"`
	Newest      *int          `json:"newest,omitempty"`
	Active      *bool         `json:"active,omitempty"` // this version runs
	Description string        `json:"description"`
	Inputs      []skill.Input `json:"inputs"` // null: it accepts any
	Document    *string       `json:"document,omitempty"`
	CreatedAt   time.Time     `json:"created_at"`
	UpdatedAt   *time.Time    `json:"updated_at,omitempty"`
}

func (s *api) listSkills(ctx context.Context, c *call) (any, error) {
	list, err := s.Skills.List(ctx, c.Caller.Workspace.ID)
	if err != nil {
		return nil, err
	}
	views := make([]skillView, len(list))
	for i, e := range list {
		views[i] = skillView{Name: e.Name, Status: e.Status, Version: e.Version, Newest: &e.Newest, Description: e.Description,
			Inputs:    inputsOf(e.Contract),
			CreatedAt: e.CreatedAt.UTC(), UpdatedAt: new(e.UpdatedAt.UTC())}
	}
	return paged(c, views, func(v skillView) string {
		fold, _ := skill.Fold(v.Name)
		return fold
	})
}

func inputsOf(contract *skill.Contract) []skill.Input {
	if contract == nil {
		return nil
	}
	return append([]skill.Input{}, contract.Inputs...)
}

func (s *api) getSkill(ctx context.Context, c *call) (any, error) {
	version := 0
	if text := c.query.Text("version"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			c.Type("/version", "integer")
		}
		version = n
	}
	if err := c.Err(); err != nil {
		return nil, err
	}
	return s.skillVersion(ctx, c, version)
}

func (s *api) skillVersion(ctx context.Context, c *call, version int) (any, error) {
	v, err := s.Skills.Get(ctx, c.Caller.Workspace.ID, c.PathValue("skill"), version)
	if err != nil {
		return nil, c.skillError(err)
	}
	return tagged{skillView{Name: v.Name, Status: v.Status, Version: v.Version, Active: &v.Active, Description: v.Description,
		Inputs:   inputsOf(v.Contract),
		Document: &v.Document, CreatedAt: v.CreatedAt.UTC()}, strconv.Itoa(v.Version)}, nil
}

// putSkill stores a version. If-Match names the newest version that the document was made from.
func (s *api) putSkill(ctx context.Context, c *call) (any, error) {
	up := skill.Upload{Document: c.body.RequiredText("document"), Draft: c.body.Bool("draft"), By: c.Caller.By()}
	if tag := c.expected(); tag != "" {
		n, err := strconv.Atoi(tag)
		if err != nil {
			n = -1 // no version
		}
		up.Expected = &n
	}
	name := c.PathValue("skill")
	if k, problems := skill.Parse(up.Document); len(problems) == 0 && !isSameSkill(k.Name, name) {
		c.Add(fault.Violation{Param: "/document", Rule: "format", Message: "The document is of the skill " + k.Name +
			", and the address names another one."})
	}
	if err := c.Err(); err != nil {
		return nil, err
	}
	pushed, err := s.Skills.Push(ctx, c.Caller.Workspace.ID, up)
	if err != nil {
		return nil, err
	}
	return s.skillVersion(ctx, c, pushed.Version)
}

func isSameSkill(a, b string) bool {
	x, ok := skill.Fold(a)
	y, known := skill.Fold(b)
	return ok && known && x == y
}

// publishSkill makes a version run; without one the newest.
func (s *api) publishSkill(ctx context.Context, c *call) (any, error) {
	version := c.body.Int("version", 0, 1, 1<<30)
	if err := c.Err(); err != nil {
		return nil, err
	}
	p, err := s.Skills.Publish(ctx, c.Caller.Workspace.ID, c.PathValue("skill"), version, c.Caller.By())
	if err != nil {
		return nil, c.skillError(err)
	}
	return p, nil
}

func (s *api) archiveSkill(ctx context.Context, c *call) (any, error) {
	if err := s.Skills.Archive(ctx, c.Caller.Workspace.ID, c.PathValue("skill"), c.Caller.By()); err != nil {
		return nil, c.skillError(err)
	}
	return deleted{c.PathValue("skill"), true}, nil
}

// changeView is an entry in the history of a skill.
type changeView struct {
	Action  string    `json:"action"`
	Version *int      `json:"version"`
	Actor   string    `json:"actor"`
	At      time.Time `json:"at"`
}

func (s *api) listSkillChanges(ctx context.Context, c *call) (any, error) {
	list, err := s.Skills.History(ctx, c.Caller.Workspace.ID, c.PathValue("skill"))
	if err != nil {
		return nil, c.skillError(err)
	}
	type numbered struct {
		changeView
		key string
	}
	views := make([]numbered, len(list))
	for i, h := range list {
		views[i] = numbered{changeView{h.Action, h.Version, h.Actor, h.At.UTC()}, strconv.Itoa(1_000_000_000 + i)}
	}
	return paged(c, views, func(v numbered) string { return v.key })
}

// skillError reports a skill that does not exist like other objects.
func (c *call) skillError(err error) error {
	if isCode(err, fault.UnknownSkill) {
		return asNotFound(err)
	}
	return err
}
