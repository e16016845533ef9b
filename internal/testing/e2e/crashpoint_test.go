//go:build faultpoints

package e2e_test

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/parley-server/parley/internal/testing/dbtest"
	"github.com/parley-server/parley/internal/testing/slow"
	"github.com/parley-server/parley/internal/testing/wait"
)

var crashTimes = flag.Int("chaos.crashes", 3, "TestCrashPoints: kill at the first to this passage of each point")

// crashPoint describes the run that passes a point.
type crashPoint struct {
	point  string // "": the name of the run
	faults []scheduledFault
	once   bool // a process passes the point once
	both   bool // either replica may be the one that passes it
	env    []string
	goesOn time.Duration
	scenario
}

// crashPoints are the runs of TestCrashPoints.
var crashPoints = map[string]crashPoint{
	"accept.before_commit":                {},
	"accept.after_commit_before_reply":    {},
	"turn.after_claim":                    {},
	"turn.before_first_event":             {},
	"append.before_commit":                {},
	"append.after_commit_before_notify":   {},
	"tool.after_use_before_call":          {},
	"tool.after_call_before_result":       {},
	"shop":                                {point: "tool.after_call_before_result", scenario: scenario{draw: onlyShop}},
	"approval.after_event_before_release": {},
	"decide.before_commit":                {},
	"decide.after_commit_before_reply":    {},
	"timeout.before_commit":               {both: true, env: []string{"PARLEY_APPROVAL_WINDOW=1s"}, scenario: expiry},
	"secret.after_vault_before_resume":    {scenario: secrets},
	"callback.after_response_before_mark": {scenario: callbacks},
	"cancel.after_mark_before_signal":     {scenario: scenario{draw: onlyCanceled}},
	"finish.before_commit":                {},
	"finish.after_commit_before_job_end":  {},
	"lease.renew":                         {},
	"listen.after_connect_before_listen": {faults: []scheduledFault{{kind: faultTerminate, at: time.Second, lasts: 100 * time.Millisecond},
		{kind: faultTerminate, at: 2 * time.Second, lasts: 100 * time.Millisecond, n: 1}}},
	"sse.after_subscribe_before_read": {},
	"sse.between_rows":                {},
	"reaper.before_requeue": {faults: []scheduledFault{{kind: faultKill, replica: 1, at: 900 * time.Millisecond,
		lasts: 2 * time.Second}}},
	"retention.between_batches": {both: true, goesOn: 8 * time.Second, scenario: retention, faults: []scheduledFault{
		{kind: faultTerm, at: 4 * time.Second, lasts: 100 * time.Millisecond},
		{kind: faultTerm, replica: 1, at: 6 * time.Second, lasts: 100 * time.Millisecond}}},
	"shutdown.mid": {once: true, faults: []scheduledFault{{kind: faultTerm, at: time.Second, lasts: 100 * time.Millisecond}}},
}

// onlyShop draws messages that call the shop: such a call must not run twice.
func onlyShop(_ *chaosRun, rng *rand.Rand, tag string) *chaosMessage {
	return newChaosMessageOf(rng, tag, messageShop)
}

// onlyCanceled draws messages whose turns are canceled.
func onlyCanceled(_ *chaosRun, rng *rand.Rand, tag string) *chaosMessage {
	m := newChaosMessageOf(rng, tag, messageText)
	m.blocking, m.cancelAfter = false, 1+rng.IntN(10)
	return m
}

// TestCrashPoints kills a replica at each point, at its first, second and third passage, and applies
// the checks of TestChaos.
func TestCrashPoints(t *testing.T) {
	slow.Test(t, "runs processes")
	db := newChaosDatabase(t)
	for name, p := range crashPoints {
		for nth := 1; nth <= *crashTimes && (nth == 1 || !p.once); nth++ {
			t.Run(fmt.Sprintf("%s/%d", name, nth), func(t *testing.T) {
				plan := chaosPlan{seed: 1, kinds: []string{name}, faults: p.faults, clients: 7, turns: 4, both: p.both, goesOn: p.goesOn,
					crash: fmt.Sprintf("%s:%d:kill", cmp.Or(p.point, name), nth), env: append([]string{"PARLEY_TURN_LEASE=2s"}, p.env...),
					scenario: p.scenario}
				c := newChaosRun(t, db, plan)
				c.mustCrash()
				c.execute()
			})
		}
	}
	for nth := 1; nth <= *crashTimes; nth++ {
		t.Run(fmt.Sprintf("migrate.mid/%d", nth), func(t *testing.T) { crashMigration(t, db, nth) })
	}
}

// mustCrash makes it a violation if no replica reached its crash point.
func (c *chaosRun) mustCrash() {
	c.checks = append(c.checks, func() {
		for i := range c.replicas {
			if text, err := os.ReadFile(filepath.Join(c.dir, fmt.Sprintf("replica-%d.log", i))); err == nil &&
				strings.Contains(string(text), "crash point ") {
				return
			}
		}
		c.violation("%s was not reached", c.plan.crash)
	})
}

// crashMigration starts two servers on an empty database, kills each after its nth migration and a
// third after its thirtieth, and then starts one that ends the migration.
func crashMigration(t *testing.T, db *chaosDatabase, nth int) {
	dsn := db.current().Empty()
	crashed := make(chan string, 3)
	start := func(passage int) {
		cmd := exec.CommandContext(t.Context(), binary, "serve", "--listen", "127.0.0.1:0")
		cmd.Env = append(environ(), "DATABASE_URL="+dsn, "PARLEY_DURABILITY=off", "PARLEY_VAULT_KEY="+vaultKey,
			fmt.Sprintf("FAULT=migrate.mid:%d:kill", passage))
		go func() {
			out, _ := cmd.CombinedOutput()
			crashed <- string(out)
		}()
	}
	start(nth)
	start(nth)
	for range 2 {
		if out := wait.Receive(t, "a server ends", crashed); !strings.Contains(out, "crash point migrate.mid") {
			t.Fatalf("a server did not reach the point:\n%s", out)
		}
	}
	start(30)
	if out := wait.Receive(t, "a server ends", crashed); !strings.Contains(out, "crash point migrate.mid") {
		t.Fatalf("a server did not reach the point:\n%s", out)
	}
	w := &world{dsn: dsn, client: brief}
	s := w.serve(t, nil)
	w = newWorldOn(t, dsn)
	session, _ := w.start(t, s, "@say whole")
	frames, err := w.follow(t.Context(), session, "", nil, s)
	if err != nil || text(frames) != "whole" {
		t.Errorf("the first turn said %q: %v", text(frames), err)
	}
	if got, want := schemaOf(t, dsn), schemaOf(t, db.current().DSN()); got != want {
		t.Errorf("the schema is not that of an undisturbed migration:\n%.3000s\nwant\n%.3000s", got, want)
	}
}

// schemaOf describes the schema of a database, without the partitions, which follow from the date.
func schemaOf(t *testing.T, dsn string) (text string) {
	t.Helper()
	err := dbtest.Pool(t, dsn).QueryRow(context.Background(), `SELECT string_agg(x, E'\n' ORDER BY x) FROM (
		SELECT format('%s.%s %s %s %s', c.oid::regclass, attname, format_type(atttypid, atttypmod), attnotnull, pg_get_expr(adbin, adrelid)) AS x
		FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum
		WHERE c.relkind IN ('r', 'p', 'v') AND NOT c.relispartition AND a.attnum > 0 AND NOT attisdropped AND c.relnamespace::regnamespace::text IN ('public', 'audit')
		UNION ALL SELECT format('%s %s', conrelid::regclass, pg_get_constraintdef(c.oid)) FROM pg_constraint c JOIN pg_class t ON t.oid = conrelid WHERE NOT relispartition
			AND c.connamespace::regnamespace::text = 'public'
		UNION ALL SELECT pg_get_indexdef(indexrelid) || indisvalid FROM pg_index JOIN pg_class t ON t.oid = indrelid WHERE NOT relispartition AND relnamespace::regnamespace::text = 'public'
		UNION ALL SELECT pg_get_triggerdef(g.oid) FROM pg_trigger g JOIN pg_class t ON t.oid = tgrelid WHERE NOT relispartition AND NOT tgisinternal
		UNION ALL SELECT pg_get_functiondef(oid) FROM pg_proc WHERE pronamespace::regnamespace::text IN ('public', 'audit') AND prokind = 'f'
		UNION ALL SELECT 'version ' || max(version_id) FROM goose_db_version
		UNION ALL SELECT 'river ' || max(version) FROM river_migration) q`).Scan(&text)
	if err != nil {
		t.Fatal(err)
	}
	return text
}
