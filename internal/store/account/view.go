package account

import (
	"context"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/parley-server/parley/db"
	"github.com/parley-server/parley/internal/fault"
)

const (
	maxViews    = 30
	maxViewName = 60   // characters
	maxFilters  = 4000 // bytes
)

// View is a member's named filters of the list of sessions.
type View struct {
	ID        uuid.UUID
	Name      string
	Filters   string // query of the page
	CreatedAt time.Time
}

// Views lists the views of a user in a workspace, oldest first.
func (s *Store) Views(ctx context.Context, workspace uuid.UUID, user string) ([]View, error) {
	rows, err := s.q.SessionViewsList(ctx, workspace, user)
	list := make([]View, len(rows))
	for i, r := range rows {
		list[i] = View{r.ID, r.Name, r.Filters, r.CreatedAt}
	}
	return list, wrapError("list views", err)
}

// SaveView stores a view. One of the same name gets the new filters.
func (s *Store) SaveView(ctx context.Context, workspace uuid.UUID, user, name, filters string) error {
	name = strings.TrimSpace(name)
	if name == "" || utf8.RuneCountInString(name) > maxViewName || !utf8.ValidString(name) || strings.ContainsFunc(name, unicode.IsControl) {
		return fault.Invalid(fault.Violation{Param: "/name", Rule: "length", Message: "The name of a view is 1 to 60 characters on one line."})
	}
	if filters == "" || len(filters) > maxFilters {
		return fault.Invalid(fault.Violation{Param: "/filters", Rule: "length",
			Message: "Set a filter first. A view stores the filters of the list."})
	}
	n, err := s.q.SessionViewPut(ctx, db.SessionViewPutParams{ID: uuid.Must(uuid.NewV7()), WorkspaceID: workspace, UserID: user, Name: name,
		Filters: filters, Most: maxViews})
	if err == nil && n == 0 {
		return fault.Invalid(fault.Violation{Param: "/name", Rule: "max_items",
			Message: "You have 30 views in this workspace. Delete one first."})
	}
	return wrapError("store a view", err)
}

// DeleteView removes a view of a user, if there is one.
func (s *Store) DeleteView(ctx context.Context, workspace uuid.UUID, user string, id uuid.UUID) error {
	return wrapError("delete a view", s.q.SessionViewDelete(ctx, workspace, user, id))
}
