package egress_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/parley-server/parley/internal/egress"
	"github.com/parley-server/parley/internal/testing/egresstest"
)

// TestNothingLeavesUnrecorded uses a record that fails.
func TestNothingLeavesUnrecorded(t *testing.T) {
	t.Parallel()
	w := newWorld(t, egress.Config{})
	broken := errors.New("the disk of db-7 is full")
	r := w.run(t, egress.RunConfig{Record: func(context.Context, egress.Request) (func(int, string), error) { return nil, broken }})
	for _, d := range doors(t, r) {
		body := &closing{Reader: strings.NewReader("body")}
		a := d.send(t, http.MethodPost, "https://api.test/", "", func(r *http.Request) { r.Body, r.ContentLength = body, 4 })
		switch d.name {
		case "do":
			if !errors.Is(a.err, broken) || !body.closed {
				t.Errorf("%s, closed %t", a.text(), body.closed)
			}
		default:
			if a.status != http.StatusServiceUnavailable || strings.Contains(a.text(), "db-7") {
				t.Errorf("%s", a.text())
			}
		}
	}
	if all := w.arrivals(); len(all) != 0 {
		t.Errorf("arrived: %+v", all)
	}
}

// TestTheRecordMayRefuse uses a record that rejects a request.
func TestTheRecordMayRefuse(t *testing.T) {
	t.Parallel()
	w := newWorld(t, egress.Config{})
	cfg := egress.RunConfig{Record: func(context.Context, egress.Request) (func(int, string), error) {
		done := func(int, string) { t.Error("the record shows a completed request") }
		return done, egress.Refused("The secret %s was removed.", "API_KEY")
	}}
	for _, d := range doors(t, w.run(t, cfg)) {
		refusedWith(t, d, d.get(t, "https://api.test/"), http.StatusForbidden, "The secret API_KEY was removed.")
	}
	if all := w.arrivals(); len(all) != 0 {
		t.Errorf("arrived: %+v", all)
	}
}

type closing struct {
	io.Reader
	closed bool
}

func (c *closing) Close() error {
	c.closed = true
	return nil
}

// TestRecordsHoldNoValue writes the value itself into paths, and reads the record before a request
// leaves.
func TestRecordsHoldNoValue(t *testing.T) {
	t.Parallel()
	w := newWorld(t, egress.Config{})
	var order []string
	w.hook = func(http.ResponseWriter, *http.Request) { order = append(order, "arrived") }
	cfg := egress.RunConfig{Record: func(_ context.Context, r egress.Request) (func(int, string), error) {
		order = append(order, r.Decision)
		_, err := w.record(t.Context(), r)
		return nil, err
	}}
	for _, d := range doors(t, w.run(t, cfg)) {
		order = nil
		a := d.send(t, http.MethodGet, "https://api.test/"+strings.ReplaceAll(value, "?", "")+strings.Repeat("/x", 2000)+"?k="+holder, "", nil)
		if a.status != 200 || fmt.Sprint(order) != "[sent arrived]" {
			t.Errorf("%s: %v: %s", d.name, order, a.text())
		}
		d.get(t, "https://"+holder+".evil.test/"+strings.ReplaceAll(value, "?", ""))
	}
	for _, n := range w.noted() {
		hidden(t, fmt.Sprintf("%+v", n))
		if len(n.Path) > 1030 || strings.Contains(n.Path, "?") || !strings.Contains(n.Path, mark) {
			t.Errorf("recorded: %+v", n)
		}
	}
}

// TestFailuresAreRecorded sends requests to servers that do not exist or whose certificate does not
// match.
func TestFailuresAreRecorded(t *testing.T) {
	t.Parallel()
	w := &world{}
	z := egresstest.Serve(t, "127.0.0.1:0", nil)
	foreign := egresstest.NewAuthority(t).Site(t, http.NotFoundHandler(), "foreign.test")
	ca := egresstest.NewAuthority(t)
	named := ca.Site(t, http.NotFoundHandler(), "other.test")
	w.guard = guard(t, egress.Config{Roots: ca.Roots(), Resolver: z.Resolver(), Allow: []string{"foreign.test:443=" + foreign,
		"named.test:443=" + named, "closed.test:443=127.0.0.1:1"}})
	for _, d := range doors(t, w.run(t, egress.RunConfig{Public: true})) {
		for host, want := range map[string]string{
			"foreign.test": "its certificate is not valid for it", "named.test": "its certificate is not valid for it",
			"closed.test": "it refused the connection", "missing.example": "there is no host of this name",
		} {
			a := d.get(t, "https://"+host+"/")
			if _, unanswered := a.err.(*egress.Unanswered); d.name == "do" && !unanswered {
				t.Errorf("%v", a.err)
			}
			if sentence := host + " could not be reached: " + want + "."; !strings.Contains(a.text(), sentence) ||
				strings.Contains(a.text(), "127.0.0.1") || d.name == "proxy" && a.status != http.StatusBadGateway {
				t.Errorf("%s: %s", d.name, a.text())
			}
		}
	}
	for _, n := range w.noted() {
		if n.Decision != egress.Sent || n.final != egress.Failed || n.status != 0 {
			t.Errorf("recorded: %+v", n)
		}
	}
}
