//go:build faultpoints

package e2e_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/parley-server/parley/internal/testing/slow"
)

var crashTimes = flag.Int("chaos.crashes", 3, "TestCrashPoints: kill at the first to this passage of each point")

// crashPoints are the points that the clients of TestChaos pass, with the faults that lead to them.
var crashPoints = map[string][]scheduledFault{
	"accept.before_commit":                nil,
	"accept.after_commit_before_reply":    nil,
	"turn.after_claim":                    nil,
	"turn.before_first_event":             nil,
	"append.before_commit":                nil,
	"append.after_commit_before_notify":   nil,
	"tool.after_use_before_call":          nil,
	"tool.after_call_before_result":       nil,
	"approval.after_event_before_release": nil,
	"decide.before_commit":                nil,
	"decide.after_commit_before_reply":    nil,
	"cancel.after_mark_before_signal":     nil,
	"finish.before_commit":                nil,
	"finish.after_commit_before_job_end":  nil,
	"lease.renew":                         nil,
	"listen.after_connect_before_listen":  {{kind: faultTerminate, at: time.Second, lasts: 100 * time.Millisecond}, {kind: faultTerminate, at: 2 * time.Second, lasts: 100 * time.Millisecond, n: 1}},
	"sse.after_subscribe_before_read":     nil,
	"sse.between_rows":                    nil,
	"reaper.before_requeue":               {{kind: faultKill, replica: 1, at: 900 * time.Millisecond, lasts: 2 * time.Second}},
	"shutdown.mid":                        {{kind: faultTerm, at: time.Second, lasts: 100 * time.Millisecond}},
}

// passedOnce are the points that a process passes once.
var passedOnce = map[string]bool{"shutdown.mid": true}

// TestCrashPoints kills a replica at each point, at its first, second and third passage, and applies
// the checks of TestChaos.
func TestCrashPoints(t *testing.T) {
	slow.Test(t, "runs processes")
	db := newChaosDatabase(t)
	for point, faults := range crashPoints {
		for nth := 1; nth <= *crashTimes && (nth == 1 || !passedOnce[point]); nth++ {
			t.Run(fmt.Sprintf("%s/%d", point, nth), func(t *testing.T) {
				plan := chaosPlan{seed: 1, kinds: []string{point}, faults: faults, clients: 7, turns: 4,
					crash: fmt.Sprintf("%s:%d:kill", point, nth), env: []string{"PARLEY_TURN_LEASE=2s"}}
				c := newChaosRun(t, db, plan)
				c.mustCrash()
				c.execute()
			})
		}
	}
}

// mustCrash makes it a violation if replica 0 never reached its crash point.
func (c *chaosRun) mustCrash() {
	log := filepath.Join(c.dir, "replica-0.log")
	c.checks = append(c.checks, func() {
		if text, err := os.ReadFile(log); err != nil || !strings.Contains(string(text), "crash point ") {
			c.violation("%s was not reached: %v", c.plan.crash, err)
		}
	})
}
