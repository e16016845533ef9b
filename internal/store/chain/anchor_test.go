package chain_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

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
	var store *chain.Store
	var made time.Time
	received := make(chan []chain.Head, 1)
	hook := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if tries.Add(1) <= 2 {
			if since := time.Since(made); store.HeadLag() < since {
				t.Errorf("no place is %s behind", since)
			}
			rw.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		heads, _, err := chain.ParseHeads(r.Body)
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
	store = chain.New(w.Pool, w.keys, chain.Options{Heads: to})
	made = time.Now()
	go func() { ended <- store.Run(ctx) }()
	var heads []chain.Head
	wait.For(t, "a head in the file", func() bool {
		data, _ := os.ReadFile(path)
		if !bytes.HasSuffix(data, []byte("\n")) {
			return false
		}
		var err error
		if heads, _, err = chain.ParseHeads(bytes.NewReader(data)); err != nil {
			t.Fatal(err)
		}
		return len(heads) > 0
	})
	posted := wait.Receive(t, "a head at the webhook", received)
	wait.For(t, "the lag has ended", func() bool { return store.HeadLag() < time.Since(made) && store.CoverLag() < time.Since(made) })
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
	stored := append(heads, posted...) // the same head, in two places
	if found := w.verify(t, chain.Verification{Heads: stored}); len(found) != 1 || found[0].Kind != chain.Anchor {
		t.Errorf("%+v", found)
	}
}

func TestCutHeadsAreReported(t *testing.T) {
	t.Parallel()
	line := func(number int64) string {
		h, err := json.Marshal(chain.Head{Number: number, Hash: make([]byte, 32), Key: "k1", Signature: make([]byte, 64)})
		if err != nil {
			t.Fatal(err)
		}
		return string(h)
	}
	one, two := line(1), line(2)
	indented := strings.NewReplacer(",", ",\n  ", "}", "\n}").Replace(two)
	for text, want := range map[string]string{
		"":                                      "[] []",
		one + "\n" + two + "\n":                 "[1 2] []",
		one + "\n\n" + two:                      "[1 2] []", // objects of a bucket end without a newline
		one + two:                               "[1 2] []",
		indented + "\n" + one:                   "[2 1] []",
		one + "\n" + two[:40]:                   "[1] [2]",
		one[:1]:                                 "[] [1]",
		one[:len(one)-1] + "\n" + two + "\n":    "[2] [1]",
		one[:40] + "\n" + two[:90] + "\n" + one: "[1] [1 2]",
		one + two[:70] + "\n" + two + "\n":      "[1 2] [1]",
		one + "\nhead":                          "line 1 is not a JSON object",
		one + "\n" + two[:40] + "\nhead\n":      "line 2 is not a JSON object",
		"head\n" + one:                          "line 1 is not a JSON object",
		one + "\n{\"number\":2}\n":              "line 2 has no number, hash or key",
		one[:len(one)-1] + "]\n":                "line 1 is not a JSON object",
		two + "\n{\"number\":}\n":               "line 2 is not a JSON object",
	} {
		heads, torn, err := chain.ParseHeads(strings.NewReader(text))
		numbers := make([]int64, len(heads))
		for i, h := range heads {
			numbers[i] = h.Number
		}
		got := fmt.Sprint(numbers, torn)
		if err != nil {
			got = err.Error()
		}
		if !strings.HasPrefix(got, want) {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}
