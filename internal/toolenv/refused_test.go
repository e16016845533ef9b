package toolenv_test

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/parley-server/parley/internal/egress"
	"github.com/parley-server/parley/internal/testing/egresstest"
	"github.com/parley-server/parley/internal/toolenv"
)

// recordedRefusals returns the number of rows for refused requests, and of the requests in them.
func (w *world) recordedRefusals(t *testing.T) (rows, requests int) {
	t.Helper()
	err := w.pool.QueryRow(t.Context(),
		`SELECT count(*), coalesce(sum(times), 0) FROM egress_requests WHERE decision = 'refused_host'`).Scan(&rows, &requests)
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
		if got := fetchAttachment(t, run, fmt.Sprintf("https://elsewhere.example/%d", i), ""); !strings.Contains(got, "not on the list") {
			t.Fatal(got)
		}
	}
	run.Close()
	if rows, requests := w.recordedRefusals(t); rows > 2 || requests != n { // 2: a minute may begin meanwhile
		t.Errorf("%d requests in %d rows", requests, rows)
	}
}

func TestRefusedHostsShareARow(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	run := w.begin(t, w.turn(t))
	const hosts = 300
	for i := range hosts {
		fetchAttachment(t, run, fmt.Sprintf("https://host-%d.example/", i), "")
	}
	run.Close()
	if rows, requests := w.recordedRefusals(t); rows > 2*65 || requests != hosts {
		t.Errorf("%d requests in %d rows", requests, rows)
	}
}

// TestAddressesRefusedAtDialShareARow requests names that resolve to internal addresses: the names
// are on the list, and the requests are refused when their addresses are known.
func TestAddressesRefusedAtDialShareARow(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const hosts, times = 70, 5
	inside := make(map[string][][]netip.Addr)
	for i := range hosts {
		inside[fmt.Sprintf("host-%d.example", i)] = [][]netip.Addr{egresstest.Addrs("127.0.0.1")}
	}
	var err error
	if w.guard, err = egress.New(egress.Config{Resolver: egresstest.Serve(t, "127.0.0.1:0", inside).Resolver()}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.replica(t).SetPolicy(t.Context(), w.workspace, toolenv.Policy{Public: true}, nil); err != nil {
		t.Fatal(err)
	}
	run := w.begin(t, w.turn(t))
	for i := range hosts * times {
		if got := fetchAttachment(t, run, fmt.Sprintf("https://host-%d.example/%d", i%hosts, i), ""); !strings.Contains(got, "not a public one") {
			t.Fatal(got)
		}
	}
	run.Close()
	var rows, requests, open int
	err = w.pool.QueryRow(t.Context(), `SELECT count(*), coalesce(sum(times), 0), count(*) FILTER (WHERE decision <> 'refused_address')
		FROM egress_requests`).Scan(&rows, &requests, &open)
	if err != nil {
		t.Fatal(err)
	}
	if rows > 2*65 || requests != hosts*times || open != 0 { // 2: a minute may begin meanwhile
		t.Errorf("%d requests in %d rows, %d of them sent", requests, rows, open)
	}
}
