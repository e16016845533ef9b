package vault_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/parley-server/parley/internal/store/vault"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// keyring parses keys, or makes a new one if none are given.
func keyring(t *testing.T, keys ...string) *vault.Keyring {
	t.Helper()
	text := ""
	for _, k := range keys {
		text += k + "\n"
	}
	if text == "" {
		text = vault.GenerateKey()
	}
	k, err := vault.ParseKeys(text)
	if err != nil {
		t.Fatal(err)
	}
	return k
}
