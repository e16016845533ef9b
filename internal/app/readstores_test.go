package app_test

import (
	"context"
	"log/slog"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/parley-server/parley/internal/app"
	"github.com/parley-server/parley/internal/testing/dbtest"
	"github.com/parley-server/parley/migrations"
)

// TestReadStoresWriteNothing opens a copy whose lineage is another one, with a role that can only
// read. Stores that write move the ids of such a copy ahead.
func TestReadStoresWriteNothing(t *testing.T) {
	t.Parallel()
	admin, owner, reader, role := dbtest.Roles(t)
	if _, err := migrations.Up(t.Context(), owner, migrations.Options{}); err != nil {
		t.Fatal(err)
	}
	exec(t, admin, "GRANT SELECT ON ALL TABLES IN SCHEMA public TO "+role)
	exec(t, admin, "INSERT INTO lineage (system_identifier, timeline) VALUES (1, 'restored')")
	log := slog.New(slog.NewTextHandler(t.Output(), nil))
	open := func(dsn string, open func(context.Context, app.Config, string, *slog.Logger) (*app.Stores, error)) *app.Stores {
		t.Helper()
		s, err := open(t.Context(), app.Config{DatabaseURL: app.Secret(dsn)}, t.TempDir(), log)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(s.Close)
		return s
	}
	for _, dsn := range []string{reader, owner} {
		s := open(dsn, app.ReadStores)
		if _, _, err := s.Chain.Head(t.Context()); err != nil {
			t.Errorf("read: %v", err)
		}
		if _, err := s.Workspaces.Create(t.Context(), "w", "", ""); err == nil {
			t.Error("a workspace was created")
		}
	}
	if got := lineageOf(t, admin); got != "restored" {
		t.Errorf("the lineage is %s now", got)
	}
	if _, err := open(owner, app.OpenStores).Workspaces.Create(t.Context(), "w", "", ""); err != nil {
		t.Error(err)
	}
	if got := lineageOf(t, admin); got == "restored" {
		t.Error("stores that write did not note the lineage")
	}
}

func lineageOf(t *testing.T, dsn string) (timeline string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	if err := conn.QueryRow(t.Context(), "SELECT timeline FROM lineage").Scan(&timeline); err != nil {
		t.Fatal(err)
	}
	return timeline
}
