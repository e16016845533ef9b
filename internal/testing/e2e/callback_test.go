package e2e_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/parley-server/parley/internal/testing/egresstest"
	"github.com/parley-server/parley/internal/testing/need"
	"github.com/parley-server/parley/internal/testing/slow"
	"github.com/parley-server/parley/internal/testing/wait"
)

// callback sends a message with a callback and returns the callback's id.
func (w *world) callback(t *testing.T, s *server, url string) string {
	t.Helper()
	var got struct {
		Data struct {
			CallbackID string `json:"callback_id"`
		}
	}
	w.call(t, w.messages(s, map[string]any{"command": "@say hi", "callback": url}), http.StatusAccepted, &got)
	return got.Data.CallbackID
}

func (w *world) call(t *testing.T, r *http.Request, status int, into any) {
	t.Helper()
	res, body := w.do(t, r)
	if err := json.Unmarshal(body, into); err != nil || res.StatusCode != status {
		t.Fatalf("%d %s: %v", res.StatusCode, body, err)
	}
}

// attempts returns the outcomes of the attempts at a callback's newest report.
func (w *world) attempts(t *testing.T, s *server, id string) (errors []string) {
	t.Helper()
	r, _ := http.NewRequest(http.MethodGet, s.url+"/api/v1/workspaces/w/callbacks/"+id, nil)
	var got struct {
		Data struct {
			Deliveries []struct{ Attempts []struct{ Error *string } }
		}
	}
	w.call(t, r, http.StatusOK, &got)
	if len(got.Data.Deliveries) == 0 {
		return nil
	}
	for _, a := range got.Data.Deliveries[0].Attempts {
		text := "delivered"
		if a.Error != nil {
			text = *a.Error
		}
		errors = append(errors, text)
	}
	return errors
}

// TestCallbackSurvivesKill kills the server while a receiver handles the request. Another server
// delivers the report, under the same id and with the same bytes.
func TestCallbackSurvivesKill(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var calls atomic.Int32
	got := make(chan string, 10)
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got <- r.Header.Get("webhook-id") + " " + string(body)
		if calls.Add(1) == 1 {
			<-r.Context().Done()
		}
	}))
	t.Cleanup(receiver.Close)
	env := []string{"PARLEY_EGRESS_ALLOW=" + receiver.URL}
	first := w.serve(t, env)
	id := w.callback(t, first, receiver.URL+"/hook")
	before := wait.Receive(t, "a result", got)
	first.kill()
	// An attempt counts as lost after a minute: move its time forward.
	if _, err := w.pool.Exec(t.Context(), `UPDATE callback_deliveries SET next_at = now() - interval '10 seconds'`); err != nil {
		t.Fatal(err)
	}
	second := w.serve(t, env)
	if after := wait.Receive(t, "a result", got); after != before {
		t.Errorf("%s, then %s", before, after)
	}
	wait.For(t, "the callback is delivered", func() bool { return fmt.Sprint(w.attempts(t, second, id)) == "[delivered]" })
}

// TestServerIsNotReboundToItself runs a whole process with a DNS server that returns a public
// address first, and 127.0.0.1 afterwards.
func TestServerIsNotReboundToItself(t *testing.T) {
	t.Parallel()
	slow.Test(t, "runs processes")
	const nameserver, name = "127.0.0.53", "rebind.parley.example"
	if _, err := exec.LookPath("bwrap"); err != nil {
		need.Missing(t, "bwrap: %v", err)
	}
	need.Root(t) // for the port of the name server
	if probe, err := net.ListenPacket("udp", nameserver+":53"); err != nil {
		need.Missing(t, "port 53: %v", err)
	} else {
		probe.Close()
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "resolv.conf")
	if err := os.WriteFile(file, []byte("nameserver "+nameserver+"\nsearch inside.example\noptions ndots:5\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	wrap := []string{"bwrap", "--dev-bind", "/", "/", "--bind", file, "/etc/resolv.conf", "--die-with-parent"}
	if out, err := exec.Command(wrap[0], append(wrap[1:], "true")...).CombinedOutput(); err != nil {
		need.Missing(t, "bwrap: %s", out)
	}
	zone := egresstest.Serve(t, nameserver+":53", map[string][][]netip.Addr{
		name:                     {egresstest.Addrs("3ffe::1"), egresstest.Addrs("127.0.0.1")}, // the first has no route
		name + ".inside.example": {egresstest.Addrs("127.0.0.1")},
	})
	canary := egresstest.NewCanary(t)
	w := newWorld(t)
	w.wrap = wrap
	s := w.serve(t, nil)
	id := w.callback(t, s, "https://"+name+":"+canary.Port+"/")
	wait.For(t, "the first attempt fails", func() bool { return len(w.attempts(t, s, id)) == 1 })
	r, _ := http.NewRequest(http.MethodPost, s.url+"/api/v1/workspaces/w/callbacks/"+id+"/redeliver", nil)
	w.call(t, r, http.StatusOK, &struct{}{})
	wait.For(t, "the second attempt is refused", func() bool { return len(w.attempts(t, s, id)) == 2 })
	if got := fmt.Sprint(w.attempts(t, s, id)); got != "[connection_failed address_refused]" && got != "[timed_out address_refused]" {
		t.Errorf("%s", got)
	}
	if zone.Questions(name) != 2 || zone.Questions(name+".inside.example") != 0 {
		t.Errorf("asked %d times, and %d times with the search domain", zone.Questions(name), zone.Questions(name+".inside.example"))
	}
}
