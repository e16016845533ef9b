package chain_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/parley-server/parley/internal/store/chain"
	"github.com/parley-server/parley/internal/testing/wait"
)

// TestHeadsAreStoredInAFile lets a running store append its head to a file, and cuts off the end of
// the log with its links.
func TestHeadsAreStoredInAFile(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.talk(t, w.replica)
	id, _ := w.talk(t, w.replica)
	path := filepath.Join(t.TempDir(), "heads.jsonl")
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- chain.New(w.Pool, w.keys, chain.Options{Heads: path}).Run(ctx) }()
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
	cancel()
	if err := wait.Receive(t, "the end of the store", ended); err != nil {
		t.Error(err)
	}
	if len(heads) != 1 || heads[0].Number != 2 {
		t.Fatalf("%+v", heads)
	}
	w.isClean(t, chain.Verification{Heads: heads})
	w.tamper(t, append(removeSession(id), `DELETE FROM chain_links WHERE number = 2`)...)
	w.isClean(t, chain.Verification{})
	if found := w.verify(t, chain.Verification{Heads: heads}); len(found) != 1 || found[0].Kind != chain.Anchor {
		t.Errorf("%+v", found)
	}
}
