package bulk_test

import (
	"context"
	"flag"
	"fmt"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	rowsRead = 600    // rows that a node may read for one page
	counted  = 10_000 // rows that a list counts
)

var measureDSN = flag.String("bulk.measure", "", "print the plans on this database, which bulk.Fill has filled")

// BenchmarkLists prints the costs of the lists on a big database.
func BenchmarkLists(b *testing.B) {
	if *measureDSN == "" {
		b.Fatal("name the database: -bulk.measure DSN")
	}
	conn, err := pgx.Connect(b.Context(), *measureDSN)
	if err != nil {
		b.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(b.Context()))
	for _, q := range queries(findKnown(b, conn)) {
		p := explain(b, conn, q)
		fmt.Printf("%s\t%.1f ms\t%s\t%v\n", q.name, p.ExecutionTime, p.brief(), faultsOf(q, p))
	}
}

// isSmall reports whether a table stays small, or is read by the rows of a page: if the table has
// few rows, PostgreSQL reads all of them for a join.
func isSmall(table string) bool {
	return slices.Contains([]string{"workspaces", "api_keys", "skills", "skill_versions", "allowlist", "documents", "callbacks",
		"callback_attempts"}, table)
}

var partitionDay = regexp.MustCompile(`^events_delta_(\d{8})$`)

// faultsOf returns the parts of a plan that are slow on a big database.
func faultsOf(q query, p plan) (faults []string) {
	most := max(q.most, rowsRead)
	p.Plan.walk(func(n node) {
		if n.Loops == 0 {
			return // never executed
		}
		if n.Table != "" && !isSmall(n.Table) && n.read() > most {
			faults = append(faults, fmt.Sprintf("reads %.0f rows of %s", n.read(), n.Table))
		}
		if m := partitionDay.FindStringSubmatch(n.Table); m != nil {
			if day, err := time.Parse("20060102", m[1]); err == nil && day.AddDate(0, 0, 1).Before(q.since) {
				faults = append(faults, "touches "+n.Table)
			}
		}
	})
	return faults
}
