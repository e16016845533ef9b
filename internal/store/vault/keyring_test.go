package vault_test

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/parley-server/parley/internal/store/vault"
)

func TestAnEnvelopeOpensForWhatItWasSealedFor(t *testing.T) {
	t.Parallel()
	keys := keyring(t)
	rapid.Check(t, func(t *rapid.T) {
		words := rapid.SliceOfN(rapid.StringN(0, 4, 8), 1, 5)
		plain := rapid.SliceOf(rapid.Byte()).Draw(t, "plain")
		mine, other := words.Draw(t, "mine"), words.Draw(t, "other")
		sealed, err := keys.Seal(plain, mine[0], mine[1:]...)
		if err != nil {
			t.Fatal(err)
		}
		got, err := keys.Open(sealed, mine[0], mine[1:]...)
		if err != nil || !bytes.Equal(got, plain) {
			t.Fatalf("opened %x, %v", got, err)
		}
		if _, err := keys.Open(sealed, other[0], other[1:]...); slices.Equal(mine, other) != (err == nil) {
			t.Fatalf("sealed for %q, opened for %q: %v", mine, other, err)
		}
		again, err := keys.Seal(plain, mine[0], mine[1:]...)
		if err != nil || bytes.Equal(again, sealed) {
			t.Fatal("the same envelope twice")
		}
	})
}

// TestNoTwoContextsAreTheSame moves the border between purpose and about.
func TestNoTwoContextsAreTheSame(t *testing.T) {
	t.Parallel()
	keys := keyring(t)
	all := [][]string{{"ab", "c"}, {"a", "bc"}, {"abc"}, {"ab", "c", ""}, {"", "abc"}, {"ab", "", "c"}, {"c", "ab"}}
	for i, a := range all {
		sealed, err := keys.Seal([]byte("x"), a[0], a[1:]...)
		if err != nil {
			t.Fatal(err)
		}
		for j, b := range all {
			if _, err := keys.Open(sealed, b[0], b[1:]...); (i == j) != (err == nil) {
				t.Errorf("sealed for %q, opened for %q: %v", a, b, err)
			}
		}
	}
}

func TestADamagedEnvelopeStaysShut(t *testing.T) {
	t.Parallel()
	keys := keyring(t)
	sealed, err := keys.Seal([]byte(hush), "test", "a")
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(sealed, []byte(hush)) {
		t.Fatal("the envelope shows its content")
	}
	for i := range sealed {
		for _, bit := range []byte{1, 128} {
			bad := bytes.Clone(sealed)
			bad[i] ^= bit
			if plain, err := keys.Open(bad, "test", "a"); !errors.Is(err, vault.ErrNotOpened) && !errors.Is(err, vault.ErrUnknownKey) {
				t.Errorf("byte %d changed: opened %q, %v", i, plain, err)
			}
		}
		if _, err := keys.Open(sealed[:i], "test", "a"); !errors.Is(err, vault.ErrNotOpened) && !errors.Is(err, vault.ErrUnknownKey) {
			t.Errorf("cut at %d: %v", i, err)
		}
	}
	if _, err := keys.Open(append(sealed, 0), "test", "a"); !errors.Is(err, vault.ErrNotOpened) {
		t.Errorf("with a byte more: %v", err)
	}
}

func TestRewrappingMovesAnEnvelopeUnderTheNewestKey(t *testing.T) {
	t.Parallel()
	first, second := vault.GenerateKey(), vault.GenerateKey()
	old, both, recent := keyring(t, first), keyring(t, second, first), keyring(t, second)
	sealed, err := old.Seal([]byte(hush), "test", "a")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := recent.Open(sealed, "test", "a"); !errors.Is(err, vault.ErrUnknownKey) || !strings.Contains(err.Error(), old.IDs()[0]) {
		t.Errorf("without its key: %v", err)
	}
	moved, changed, err := both.Rewrap(sealed)
	if err != nil || !changed {
		t.Fatalf("rewrap: %t, %v", changed, err)
	}
	if id, ok := vault.SealedUnder(moved); !ok || id != recent.IDs()[0] {
		t.Errorf("now under %s", id)
	}
	if plain, err := recent.Open(moved, "test", "a"); err != nil || string(plain) != hush {
		t.Errorf("opened %q, %v", plain, err)
	}
	if _, err := recent.Open(moved, "test", "b"); !errors.Is(err, vault.ErrNotOpened) {
		t.Errorf("about something else: %v", err)
	}
	if _, err := old.Open(moved, "test", "a"); !errors.Is(err, vault.ErrUnknownKey) {
		t.Errorf("the old key still opens it: %v", err)
	}
	if same, changed, err := both.Rewrap(moved); err != nil || changed || !bytes.Equal(same, moved) {
		t.Errorf("rewrapped twice: %t, %v", changed, err)
	}
	// The id is part of the authenticated data: an envelope cannot be pointed at another key.
	if _, _, err := keyring(t, first, strings.Replace(second, recent.IDs()[0], "other", 1)).Rewrap(bytes.Replace(moved,
		[]byte(recent.IDs()[0]), []byte(old.IDs()[0]), 1)); !errors.Is(err, vault.ErrNotOpened) {
		t.Errorf("under a false id: %v", err)
	}
}

func TestDerivedKeysAreSeparate(t *testing.T) {
	t.Parallel()
	first, second := vault.GenerateKey(), vault.GenerateKey()
	old, both := keyring(t, first), keyring(t, second, first)
	id, key := old.Derive("urls")
	if again, ok := both.DeriveFrom(id, "urls"); !ok || !bytes.Equal(again, key) || len(key) != 32 {
		t.Error("DeriveFrom does not find the previous key")
	}
	if newest, other := both.Derive("urls"); newest == id || bytes.Equal(other, key) {
		t.Error("a new master key derives the key of the old one")
	}
	if _, other := old.Derive("other"); bytes.Equal(other, key) {
		t.Error("two purposes share a key")
	}
	if _, ok := both.DeriveFrom("unknown", "urls"); ok {
		t.Error("an empty key was derived")
	}
}

func TestKeysAreReadWithTheirComments(t *testing.T) {
	t.Parallel()
	a, b, c := vault.GenerateKey(), vault.GenerateKey(), vault.GenerateKey()
	id := func(key string) string { id, _, _ := strings.Cut(key, ":"); return id }
	k, err := vault.ParseKeys("# newest first\r\n\n" + a + " # since May\n  " + b + "," + c + "\n")
	if err != nil || !slices.Equal(k.IDs(), []string{id(a), id(b), id(c)}) {
		t.Errorf("read %v, %v", k, err)
	}
	for _, empty := range []string{"", "\n", "# " + a} {
		if _, err := vault.ParseKeys(empty); err == nil {
			t.Errorf("%q is a keyring", empty)
		}
	}
	var none *vault.Keyring
	for _, k := range []*vault.Keyring{none, {}} {
		if _, err := k.Seal([]byte("x"), "test"); err == nil {
			t.Error("sealed without a key")
		}
	}
}
