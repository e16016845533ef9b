// Package bulk fills a database like a busy service, for tests of plans and for measurements at any
// size.
package bulk

import (
	"context"
	_ "embed"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

//go:embed fill.sql
var fill string

// Fill stores sessions with all their rows in a fresh database, and gathers statistics. A million
// sessions take about four minutes with fsync off.
func Fill(ctx context.Context, conn *pgx.Conn, sessions int) error {
	set := fmt.Sprintf("SET bulk.sessions = %d;", sessions)
	if _, err := conn.Exec(ctx, set+fill, pgx.QueryExecModeSimpleProtocol); err != nil {
		return fmt.Errorf("fill the database: %w", err)
	}
	if _, err := conn.Exec(ctx, "VACUUM (ANALYZE)"); err != nil {
		return fmt.Errorf("analyze the database: %w", err)
	}
	return nil
}

// Workspace is the workspace that has nine tenths of the sessions.
var Workspace = uuid.MustParse("00000000-0000-7000-8000-000000000000")
