package client

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"time"
)

// Skill is a skill in a list. Version is the one that runs, or the newest if none runs.
type Skill struct {
	Name        string          `json:"name"`
	Status      string          `json:"status"` // draft, active or archived
	Version     int             `json:"version"`
	Newest      int             `json:"newest"`
	Description string          `json:"description"`
	Inputs      json.RawMessage `json:"inputs"` // the declared inputs; null: it accepts any
	CreatedAt   time.Time       `json:"created_at"`
	UpdatedAt   time.Time       `json:"updated_at"`
}

// SkillVersion is a version of a skill with its SKILL.md. Status is that of the skill. The ETag is
// the number of the version.
type SkillVersion struct {
	Versioned
	Name        string          `json:"name"`
	Status      string          `json:"status"`
	Version     int             `json:"version"`
	Active      bool            `json:"active"` // this version runs
	Description string          `json:"description"`
	Inputs      json.RawMessage `json:"inputs"`
	Document    string          `json:"document"`
	CreatedAt   time.Time       `json:"created_at"`
}

// SkillEvent is a change of a skill.
type SkillEvent struct {
	Action  string    `json:"action"` // push, publish or archive
	Version *int      `json:"version"`
	Actor   string    `json:"actor"`
	At      time.Time `json:"at"`
}

// Skills lists the skills of the workspace.
func (a Admin) Skills(ctx context.Context) ([]Skill, error) {
	return listAll[Skill](ctx, a, a.workspace(http.MethodGet, nil, "skills"))
}

// Skill returns a version of a skill; 0 is the newest.
func (a Admin) Skill(ctx context.Context, name string, version int) (SkillVersion, error) {
	call := a.workspace(http.MethodGet, nil, "skills", name)
	if version > 0 {
		call = call.with("version", strconv.Itoa(version))
	}
	return administer[SkillVersion](ctx, a, call)
}

// PutSkill stores a SKILL.md as the next version of a skill, unless the newest one equals it. The
// version runs from now on unless it is a draft. etag is that of the newest version.
func (a Admin) PutSkill(ctx context.Context, name, document string, draft bool, etag string) (SkillVersion, error) {
	in := object{"document": document, "draft": draft}
	return administer[SkillVersion](ctx, a, a.workspace(http.MethodPut, in, "skills", name).ifMatch(etag))
}

// SkillEvents lists the changes of a skill.
func (a Admin) SkillEvents(ctx context.Context, name string) ([]SkillEvent, error) {
	return listAll[SkillEvent](ctx, a, a.workspace(http.MethodGet, nil, "skills", name, "changes"))
}

// PublishedSkill is the result of PublishSkill.
type PublishedSkill struct {
	Name    string `json:"name"`
	Version int    `json:"version"`
	Stored  bool   `json:"stored"`
	Active  bool   `json:"active"`
}

// PublishSkill makes a version of a skill run; 0 is the newest.
func (a Admin) PublishSkill(ctx context.Context, name string, version int) (PublishedSkill, error) {
	in := object{}
	if version > 0 {
		in["version"] = version
	}
	return administer[PublishedSkill](ctx, a, a.workspace(http.MethodPost, in, "skills", name, "publish"))
}

// ArchiveSkill ends a skill. Its versions stay.
func (a Admin) ArchiveSkill(ctx context.Context, name string) error {
	_, err := administer[object](ctx, a, a.workspace(http.MethodPost, nil, "skills", name, "archive"))
	return err
}

// Document is a document of the workspace's knowledge. In a list it has no content. The ETag is its
// version.
type Document struct {
	Versioned
	Path      string    `json:"path"`
	Title     string    `json:"title"`
	Size      int       `json:"size"`   // bytes
	SHA256    string    `json:"sha256"` // of the content, in hex
	Version   int       `json:"version"`
	UpdatedAt time.Time `json:"updated_at"`
	Content   string    `json:"content,omitempty"`
}

// Documents lists the documents whose path begins with prefix.
func (a Admin) Documents(ctx context.Context, prefix string) ([]Document, error) {
	return listAll[Document](ctx, a, a.workspace(http.MethodGet, nil, "documents").with("prefix", prefix))
}

// Document returns a document with its content.
func (a Admin) Document(ctx context.Context, path string) (Document, error) {
	return administer[Document](ctx, a, a.workspace(http.MethodGet, nil, "documents", "content").with("path", path))
}

// PutDocument writes a document. The etag of a document that must not exist yet is `"0"`.
func (a Admin) PutDocument(ctx context.Context, path, content, etag string) (Document, error) {
	call := a.workspace(http.MethodPut, object{"content": content}, "documents", "content").with("path", path)
	return administer[Document](ctx, a, call.ifMatch(etag))
}

// DeleteDocument deletes a document.
func (a Admin) DeleteDocument(ctx context.Context, path string) error {
	_, err := administer[object](ctx, a, a.workspace(http.MethodDelete, nil, "documents", "content").with("path", path))
	return err
}
