package faultproxy_test

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-server/parley/internal/testing/dbtest/faultproxy"
)

func TestForwards(t *testing.T) {
	t.Parallel()
	for network, address := range map[string]string{"tcp": "127.0.0.1:0", "unix": filepath.Join(t.TempDir(), "s")} {
		t.Run(network, func(t *testing.T) {
			t.Parallel()
			target, ended := echo(t, network, address)
			p := faultproxy.New(t, target)
			c := connect(t, p)
			c.exchange("one")
			c.exchange(strings.Repeat("two", 100_000))
			_ = c.Close()
			if err := end(t, ended); err != nil {
				t.Errorf("the server saw %v, want an ordinary end", err)
			}
		})
	}
}

func TestCutResetsBothSides(t *testing.T) {
	t.Parallel()
	target, ended := echo(t, "tcp", "127.0.0.1:0")
	p := faultproxy.New(t, target)
	a, b := connect(t, p), connect(t, p)
	a.exchange("a")
	b.exchange("b")
	if n := p.Cut(); n != 2 {
		t.Errorf("cut %d connections, want 2", n)
	}
	a.broken("")
	b.broken("")
	for range 2 {
		if err := end(t, ended); !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("the server saw %v, want a reset", err)
		}
	}
	connect(t, p).exchange("again")
}

func TestRefuseResetsNewConnections(t *testing.T) {
	t.Parallel()
	target, _ := echo(t, "tcp", "127.0.0.1:0")
	p := faultproxy.New(t, target)
	old := connect(t, p)
	old.exchange("old")
	p.Refuse(true)
	refused(t, p)
	old.exchange("still here")
	p.Refuse(false)
	connect(t, p).exchange("new")
}

func TestUnreachableTargetIsAReset(t *testing.T) {
	t.Parallel()
	p := faultproxy.New(t, filepath.Join(t.TempDir(), "none"))
	refused(t, p)
}

// TestFreezeIsHalfOpen checks old and new connections, and that the server does not notice a
// disconnected client until Thaw.
func TestFreezeIsHalfOpen(t *testing.T) {
	t.Parallel()
	target, ended := echo(t, "tcp", "127.0.0.1:0")
	p := faultproxy.New(t, target)
	stays, leaves := connect(t, p), connect(t, p)
	stays.exchange("before")
	leaves.exchange("before")
	p.Freeze()
	fresh := connect(t, p)
	for _, c := range []peer{stays, leaves, fresh} {
		c.send("during")
		c.silent()
	}
	_ = leaves.Close()
	select {
	case <-ended:
		t.Error("the server received an end through a frozen proxy")
	case <-time.After(soon):
	}
	p.Thaw()
	for _, c := range []peer{stays, fresh} {
		if got, err := c.receive(6, late); got != "during" {
			t.Errorf("after the thaw: %q, %v", got, err)
		}
	}
	end(t, ended)
	p.Freeze()
	stays.send("lost")
	p.Cut()
	stays.broken("")
}

func TestAbandonLeavesTheClientAlone(t *testing.T) {
	t.Parallel()
	target, ended := echo(t, "tcp", "127.0.0.1:0")
	p := faultproxy.New(t, target)
	c := connect(t, p)
	c.exchange("before")
	p.Abandon(false) // no connection is silent
	c.exchange("still")
	p.Abandon(true)
	end(t, ended)
	c.send("during")
	c.silent()
	connect(t, p).exchange("a new one")
}

func TestDelayHoldsBack(t *testing.T) {
	t.Parallel()
	target, _ := echo(t, "tcp", "127.0.0.1:0")
	p := faultproxy.New(t, target)
	c := connect(t, p)
	c.exchange("fast")
	p.Delay(soon)
	start := time.Now()
	c.exchange("slow")
	if took := time.Since(start); took < 2*soon {
		t.Errorf("the exchange took %v, want at least %v", took, 2*soon)
	}
	p.Delay(0)
	p.OnChunk(func(c faultproxy.Chunk) faultproxy.Action {
		if c.Direction == faultproxy.ToServer {
			return faultproxy.DelayBy(soon)
		}
		return faultproxy.Forward
	})
	start = time.Now()
	c.exchange("slow")
	if took := time.Since(start); took < soon {
		t.Errorf("the exchange took %v, want at least %v", took, soon)
	}
}

func TestHookSeesEachChunk(t *testing.T) {
	t.Parallel()
	target, _ := echo(t, "tcp", "127.0.0.1:0")
	p := faultproxy.New(t, target)
	var seen []faultproxy.Chunk
	p.OnChunk(func(c faultproxy.Chunk) faultproxy.Action {
		c.Data = slices.Clone(c.Data)
		seen = append(seen, c)
		return faultproxy.Forward
	})
	first := connect(t, p)
	first.exchange("one")
	first.exchange("four")
	connect(t, p).exchange("two")
	p.OnChunk(nil) // from here only the test uses seen
	want := []faultproxy.Chunk{
		{Conn: 1, Direction: faultproxy.ToServer, Offset: 0, Data: []byte("one")},
		{Conn: 1, Direction: faultproxy.ToClient, Offset: 0, Data: []byte("one")},
		{Conn: 1, Direction: faultproxy.ToServer, Offset: 3, Data: []byte("four")},
		{Conn: 1, Direction: faultproxy.ToClient, Offset: 3, Data: []byte("four")},
		{Conn: 2, Direction: faultproxy.ToServer, Offset: 0, Data: []byte("two")},
		{Conn: 2, Direction: faultproxy.ToClient, Offset: 0, Data: []byte("two")},
	}
	if diff := cmp.Diff(want, seen); diff != "" {
		t.Errorf("the hook saw other chunks (-want +got):\n%s", diff)
	}
}

func TestHookFaults(t *testing.T) {
	t.Parallel()
	target, ended := echo(t, "tcp", "127.0.0.1:0")
	p := faultproxy.New(t, target)
	p.OnChunk(func(c faultproxy.Chunk) faultproxy.Action {
		switch string(c.Data) {
		case "freeze":
			return faultproxy.FreezeConn
		case "swallow":
			return faultproxy.Swallow
		case "secret":
			return faultproxy.ResetAfter(2)
		}
		return faultproxy.Forward
	})
	swallowed := connect(t, p)
	swallowed.send("swallow")
	swallowed.silent()
	swallowed.exchange("later")
	frozen := connect(t, p)
	frozen.exchange("before")
	frozen.send("freeze")
	frozen.silent()
	frozen.send("more")
	frozen.silent()
	reset := connect(t, p)
	reset.send("secret")
	reset.broken("")
	if err := end(t, ended); err != nil && !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("the server saw %v, want a reset", err)
	}
	swallowed.exchange("the others continue")
}

// TestCutExchangeAtEveryByte cuts an exchange of six bytes in each direction at each of them.
func TestCutExchangeAtEveryByte(t *testing.T) {
	t.Parallel()
	target, _ := echo(t, "tcp", "127.0.0.1:0")
	p := faultproxy.New(t, target)
	for n := range 13 {
		fired := false
		p.OnChunk(faultproxy.CutExchange(func(c faultproxy.Chunk) bool { return string(c.Data) == "secret" }, n, func() { fired = true }))
		other, c := connect(t, p), connect(t, p)
		other.exchange("other")
		c.exchange("before")
		c.send("secret")
		c.broken("secret"[:max(0, n-6)])
		other.exchange("other")
		connect(t, p).exchange("secret") // only one exchange is cut
		if p.OnChunk(nil); !fired {
			t.Errorf("the cut after %d bytes was not reported", n)
		}
	}
}
