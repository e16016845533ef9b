package migrations_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/parley-server/parley/internal/testing/dbtest"
	"github.com/parley-server/parley/migrations"
)

// TestAuditViewsAreDescribed demands a comment for every view and column of the schema audit, and
// the columns that every view has.
func TestAuditViewsAreDescribed(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t)
	const missing = `SELECT array_agg(c.relname || '.' || a.attname) FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
		WHERE c.relnamespace = 'audit'::regnamespace AND (obj_description(c.oid, 'pg_class') IS NULL OR col_description(c.oid, a.attnum) IS NULL)`
	var bare []string
	if err := pool.QueryRow(t.Context(), missing).Scan(&bare); err != nil || bare != nil {
		t.Errorf("without a comment: %v, %v", bare, err)
	}
	const incomplete = `SELECT array_agg(c.relname::text) FROM pg_class c WHERE c.relnamespace = 'audit'::regnamespace AND c.relkind = 'v'
		AND (SELECT count(*) FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attname IN ('workspace_id', 'at')) < 2`
	if err := pool.QueryRow(t.Context(), incomplete).Scan(&bare); err != nil || bare != nil {
		t.Errorf("without a workspace or a time: %v, %v", bare, err)
	}
}

// TestPartitionsHaveTheirIndexes removes the indexes of partitions, as in a database that is older
// than they are. Up makes them.
func TestPartitionsHaveTheirIndexes(t *testing.T) {
	t.Parallel()
	dsn := dbtest.DSN(t)
	pool := dbtest.Pool(t, dsn)
	const count = `SELECT count(*), count(x.indexrelid) FROM events_partition_ends() p CROSS JOIN LATERAL events_indexes(p.name) i
		LEFT JOIN pg_index x ON x.indexrelid = to_regclass(i.name) AND x.indisvalid WHERE NOT p.delta`
	var want, have int
	check := func() {
		t.Helper()
		if err := pool.QueryRow(t.Context(), count).Scan(&want, &have); err != nil {
			t.Fatal(err)
		}
	}
	if check(); want == 0 || have != want {
		t.Fatalf("a new database has %d of %d indexes", have, want)
	}
	_, err := pool.Exec(t.Context(), `DO $$ DECLARE i text; BEGIN
		FOR i IN SELECT x.name FROM events_partition_ends() p, events_indexes(p.name) x WHERE NOT p.delta LOOP EXECUTE format('DROP INDEX %I', i); END LOOP;
	END $$`)
	if err != nil {
		t.Fatal(err)
	}
	if check(); have != 0 {
		t.Fatalf("%d indexes are left", have)
	}
	if _, err := migrations.Up(t.Context(), dsn, migrations.Options{}); err != nil {
		t.Fatal(err)
	}
	if check(); have != want {
		t.Errorf("Up has made %d of %d indexes", have, want)
	}
}

var update = flag.Bool("update", false, "write the page of the audit views")

// viewsPage is written by `make generate`.
const viewsPage = "../docs/reference/audit-views.md"

// TestDocumentationListsTheViews compares the page with the comments in the database.
func TestDocumentationListsTheViews(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t)
	rows, err := pool.Query(t.Context(),
		`SELECT c.relname, obj_description(c.oid, 'pg_class'), a.attname, format_type(a.atttypid, a.atttypmod), col_description(c.oid, a.attnum)
		FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid WHERE c.relnamespace = 'audit'::regnamespace AND c.relkind = 'v' AND a.attnum > 0 ORDER BY c.relname, a.attnum`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var page strings.Builder
	page.WriteString(
		"# Audit views\n\nThe columns of the views of the schema `audit`. [Audit](../audit.md) explains them and has\nquestions with " +
			"their SQL. `make generate` writes this page from the comments in the database.\n")
	last := ""
	for rows.Next() {
		var view, about, column, typ, comment string
		if err := rows.Scan(&view, &about, &column, &typ, &comment); err != nil {
			t.Fatal(err)
		}
		if view != last {
			fmt.Fprintf(&page, "\n## %s\n\n%s\n\n| column | type | content |\n|---|---|---|\n", view, about)
			last = view
		}
		fmt.Fprintf(&page, "| `%s` | %s | %s |\n", column, strings.Replace(typ, "timestamp with time zone", "timestamptz", 1), comment)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(viewsPage, []byte(page.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if has, err := os.ReadFile(viewsPage); err != nil || string(has) != page.String() {
		t.Errorf("%s is not what `make generate` writes: %v", viewsPage, err)
	}
}
