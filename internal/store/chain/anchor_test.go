package chain_test

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/parley-server/parley/internal/store/chain"
	"github.com/parley-server/parley/internal/store/chain/anchor"
	"github.com/parley-server/parley/internal/testing/wait"
)

// TestHeadsAreStoredOutside lets a running store append its head to a file, while a webhook fails
// twice. Then it cuts off the end of the log with its links.
func TestHeadsAreStoredOutside(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.talk(t, w.replica)
	id, _ := w.talk(t, w.replica)
	var tries atomic.Int32
	received := make(chan []chain.Head, 1)
	hook := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if tries.Add(1) <= 2 {
			rw.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		heads, err := chain.ParseHeads(r.Body)
		if err != nil {
			t.Error(err)
		}
		received <- heads
	}))
	defer hook.Close()
	path := filepath.Join(t.TempDir(), "heads.jsonl")
	to, err := anchor.Parse(path+", "+hook.URL, anchor.Options{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- chain.New(w.Pool, w.keys, chain.Options{Heads: to}).Run(ctx) }()
	var heads []chain.Head
	wait.For(t, "a head in the file", func() bool {
		data, _ := os.ReadFile(path)
		if !bytes.HasSuffix(data, []byte("\n")) {
			return false
		}
		var err error
		if heads, err = chain.ParseHeads(bytes.NewReader(data)); err != nil {
			t.Fatal(err)
		}
		return len(heads) > 0
	})
	posted := wait.Receive(t, "a head at the webhook", received)
	cancel()
	if err := wait.Receive(t, "the end of the store", ended); err != nil {
		t.Error(err)
	}
	if len(heads) != 1 || heads[0].Number != 2 || len(posted) != 1 || !bytes.Equal(posted[0].Hash, heads[0].Hash) {
		t.Fatalf("%+v, %+v", heads, posted)
	}
	w.isClean(t, chain.Verification{Heads: heads})
	w.tamper(t, append(removeSession(id), `DELETE FROM chain_links WHERE number = 2`)...)
	w.isClean(t, chain.Verification{})
	if found := w.verify(t, chain.Verification{Heads: heads}); len(found) != 1 || found[0].Kind != chain.Anchor {
		t.Errorf("%+v", found)
	}
}
