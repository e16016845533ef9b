package runner_test

import (
	"fmt"
	"strings"
	"testing"
)

// recordedRefusals returns the number of rows of refused requests, and of the requests in them.
func (w *world) recordedRefusals(t *testing.T) (rows, requests int) {
	t.Helper()
	err := w.pool.QueryRow(t.Context(), `SELECT count(*), coalesce(sum(times), 0) FROM egress_requests WHERE decision = 'refused_host'`).Scan(&rows, &requests)
	if err != nil {
		t.Fatal(err)
	}
	return rows, requests
}

func TestRefusedRequestsAreAggregated(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	run := w.begin(t, w.turn(t))
	const n = 1000
	for i := range n {
		if got := fetch(t, run, fmt.Sprintf("https://elsewhere.example/%d", i), ""); !strings.Contains(got, "not on the list") {
			t.Fatal(got)
		}
	}
	run.Close()
	if rows, requests := w.recordedRefusals(t); rows > 2 || requests != n { // 2: a minute began
		t.Errorf("%d requests in %d rows", requests, rows)
	}
}

func TestRefusedHostsShareARow(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	run := w.begin(t, w.turn(t))
	const hosts = 300
	for i := range hosts {
		fetch(t, run, fmt.Sprintf("https://host-%d.example/", i), "")
	}
	run.Close()
	if rows, requests := w.recordedRefusals(t); rows > 2*65 || requests != hosts {
		t.Errorf("%d requests in %d rows", requests, rows)
	}
}
