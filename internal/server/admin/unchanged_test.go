package admin_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/parley-server/parley/internal/testing/wait"
)

// TestChangesRequireUnchangedObjects sends changes that name a position of the log: those of objects
// that were changed after it are rejected, whatever the object and whichever program changed it.
func TestChangesRequireUnchangedObjects(t *testing.T) {
	t.Parallel()
	s := start(t)
	position := func() string {
		var w struct {
			Position string `json:"log_position"`
		}
		s.must(t, "GET ", "", &w)
		return w.Position
	}
	s.must(t, "PUT documents/content?path=wiki/a.md", `{"content":"# A"}`, nil)
	s.must(t, "PUT credentials/STRIPE_KEY", `{"allowed_hosts":["api.stripe.com"]}`, nil)
	s.must(t, "PUT budgets/workspace", `{"max_tokens":1}`, nil)
	s.must(t, "PUT skills/triage", `{"document":"---\nname: triage\ndescription: Sort.\n---\nSort.\n"}`, nil)
	s.must(t, "POST agents", `{"name":"support"}`, nil)
	before := position()
	since := []string{"Parley-Unchanged-Since", before}
	changes := []string{
		"PUT tools/bash/rule {\"rule\":\"deny\"}", "PUT budgets/workspace {\"max_tokens\":2}",
		"PUT credentials/STRIPE_KEY {\"allowed_hosts\":[\"b.example.com\"]}",
		"PUT documents/content?path=wiki/a.md {\"content\":\"# B\"}", "PUT egress {\"hosts\":[\"a.example.com\"]}", "PATCH  {\"name\":\"Mine\"}",
		"PUT agents/support {\"instructions\":\"Mine.\"}", "PUT agents/default {\"instructions\":\"Mine.\"}", "POST skills/triage/archive ",
	}
	split := func(change string) (call, body string) {
		var method, path string
		if _, err := fmt.Sscanf(change, "%s", &method); err != nil {
			t.Fatal(err)
		}
		rest := change[len(method)+1:]
		for i, r := range rest {
			if r == ' ' {
				path, body = rest[:i], rest[i+1:]
				break
			}
		}
		return method + " " + path, body
	}
	for _, change := range changes { // an unchanged object is changed, once
		call, body := split(change)
		s.must(t, call, body, nil, since...)
	}
	for _, change := range []string{
		"DELETE tools/bash/rule ", "DELETE budgets/workspace ", "DELETE credentials/STRIPE_KEY ",
		"DELETE documents/content?path=wiki/a.md ", "PUT egress {\"hosts\":[]}",
		"PATCH  {\"name\":\"Other\"}", "DELETE agents/support ", "PUT agents/default {\"instructions\":\"Other.\"}",
		"POST skills/triage/publish {}",
	} {
		call, body := split(change)
		s.refused(t, "PRECONDITION_FAILED", call, body, since...)
	}

	s.must(t, "PUT tools/grep/rule", `{"rule":"deny"}`, nil)
	// A transaction that is open while the position is read comes after it, though its entry has a
	// lower number than others.
	err := pgx.BeginFunc(t.Context(), s.Pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(t.Context(), "INSERT INTO tool_rules (workspace_id, tool, rule) VALUES ($1, 'read', 'deny')",
			s.Workspace.ID); err != nil {
			return err
		}
		s.must(t, "PUT tools/grep/rule", `{"rule":"ask"}`, nil)
		before = position()
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	s.refused(t, "PRECONDITION_FAILED", "PUT tools/read/rule", `{"rule":"allow"}`, "Parley-Unchanged-Since", before)
	s.must(t, "PUT tools/grep/rule", `{"rule":"allow"}`, nil, "Parley-Unchanged-Since", before)

	// A restored dump has entries with the transactions of another cluster.
	const foreign = `INSERT INTO admin_log (workspace_id, object, object_id, action, actor_kind, xact) VALUES ($1, 'tool_rules', 'grep',` +
		` 'update', 'key', 1::bigint << 50)`
	if _, err := s.Pool.Exec(t.Context(), foreign, s.Workspace.ID); err != nil {
		t.Fatal(err)
	}
	s.must(t, "PUT tools/grep/rule", `{"rule":"ask"}`, nil, "Parley-Unchanged-Since", position())

	before = position()
	codes := make([]string, 8)
	var wg sync.WaitGroup
	for i := range codes {
		rule := []string{"allow", "deny"}[i%2]
		wg.Go(func() {
			codes[i] = s.do(t, "PUT tools/write/rule", `{"rule":"`+rule+`"}`, "Parley-Unchanged-Since", before).Error.Code
		})
	}
	wait.Until(t, "all changes", wg.Wait)
	failed := 0
	for _, code := range codes {
		if code == "PRECONDITION_FAILED" {
			failed++
		} else if code != "" {
			t.Errorf("failed with %s", code)
		}
	}
	// Setting the rule that the first one set changes nothing.
	if failed < 4 {
		t.Errorf("%d changes of 8 failed; codes %q", failed, codes)
	}
	for _, bad := range []string{"x", "1", "2:1:", "1:5:7", "1:5:3,2", "0:5:", "1:9:5:", "1:99999999999999999999:"} {
		s.refused(t, "INVALID_REQUEST", "PUT tools/bash/rule", `{"rule":"ask"}`, "Parley-Unchanged-Since", bad)
	}
}
