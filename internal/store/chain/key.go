package chain

import (
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"fmt"
	"strings"

	"github.com/parley-server/parley/db"
	"github.com/parley-server/parley/internal/store/vault"
)

// keyPurpose separates the signing keys from all others that are derived from the master keys.
const keyPurpose = "signatures of the log"

// signingKey is derived from a master key, and has its id.
type signingKey struct {
	id      string
	private ed25519.PrivateKey
}

func (k signingKey) public() ed25519.PublicKey { return k.private.Public().(ed25519.PublicKey) }

// newestKey returns the key that signs.
func newestKey(keys *vault.Keyring) signingKey {
	id, seed := keys.Derive(keyPurpose)
	return signingKey{id, ed25519.NewKeyFromSeed(seed)}
}

func findKey(keys *vault.Keyring, id string) (signingKey, bool) {
	seed, ok := keys.DeriveFrom(id, keyPurpose)
	if !ok {
		return signingKey{}, false
	}
	return signingKey{id, ed25519.NewKeyFromSeed(seed)}, true
}

// endorsedText is what a key signs to vouch for another one.
func endorsedText(id string, public ed25519.PublicKey) []byte {
	return append([]byte("parley key v1\x00"+id+"\x00"), public...)
}

// publishKey stores the public key of the newest key, unless it is stored. If the server still has
// the key before it, the two vouch for each other.
func publishKey(ctx context.Context, q *db.Queries, keys *vault.Keyring) (signingKey, error) {
	key := newestKey(keys)
	stored, err := q.ChainKeys(ctx)
	if err != nil {
		return key, fmt.Errorf("read the keys of the chain: %w", err)
	}
	for _, k := range stored {
		if k.ID == key.id {
			return key, nil
		}
	}
	p := db.ChainKeyAddParams{ID: key.id, PublicKey: key.public()}
	if len(stored) > 0 {
		last := stored[len(stored)-1]
		p.Before = &last.ID
		if old, ok := findKey(keys, last.ID); ok {
			p.Endorsement = ed25519.Sign(old.private, endorsedText(key.id, key.public()))
			p.Backing = ed25519.Sign(key.private, endorsedText(last.ID, last.PublicKey))
		}
	}
	if err := q.ChainKeyAdd(ctx, p); err != nil {
		return key, fmt.Errorf("store a key of the chain: %w", err)
	}
	return key, nil
}

// PublicKeys are the keys that a verifier trusts, by their ids.
type PublicKeys map[string]ed25519.PublicKey

// PublicKeysOf returns the public keys of a keyring.
func PublicKeysOf(keys *vault.Keyring) PublicKeys {
	all := make(PublicKeys)
	for _, id := range keys.IDs() {
		if k, ok := findKey(keys, id); ok {
			all[id] = k.public()
		}
	}
	return all
}

// ParsePublicKeys parses keys in the form id:base64, separated by blanks or lines.
func ParsePublicKeys(text string) (PublicKeys, error) {
	all := make(PublicKeys)
	for _, word := range strings.Fields(text) {
		id, encoded, _ := strings.Cut(word, ":")
		key, err := base64.StdEncoding.DecodeString(encoded)
		if err != nil || id == "" || len(key) != ed25519.PublicKeySize {
			return nil, fmt.Errorf("%q is not a public key. `parley audit public-key` prints one as ID:BASE64", word)
		}
		all[id] = key
	}
	return all, nil
}

// FormatPublicKey returns a key in the form of ParsePublicKeys.
func FormatPublicKey(id string, key ed25519.PublicKey) string {
	return id + ":" + base64.StdEncoding.EncodeToString(key)
}

// widen adds the stored keys that trusted ones vouch for.
func (p PublicKeys) widen(stored []db.ChainKeysRow) PublicKeys {
	all := make(PublicKeys, len(p)+len(stored))
	for id, key := range p {
		all[id] = key
	}
	byID := make(map[string]db.ChainKeysRow, len(stored))
	for _, k := range stored {
		byID[k.ID] = k
	}
	for grown := true; grown; {
		grown = false
		for _, k := range stored {
			if k.Before == nil || len(k.PublicKey) != ed25519.PublicKeySize {
				continue
			}
			old, known := byID[*k.Before]
			if !known || len(old.PublicKey) != ed25519.PublicKeySize {
				continue
			}
			by, trusted := all[old.ID]
			if _, has := all[k.ID]; trusted && !has && ed25519.Verify(by, endorsedText(k.ID, k.PublicKey), k.Endorsement) {
				all[k.ID], grown = k.PublicKey, true
			}
			by, trusted = all[k.ID]
			if _, has := all[old.ID]; trusted && !has && ed25519.Verify(by, endorsedText(old.ID, old.PublicKey), k.Backing) {
				all[old.ID], grown = old.PublicKey, true
			}
		}
	}
	return all
}

// verifyHead reports whether a trusted key has signed a link.
func (p PublicKeys) verifyHead(key string, number int64, hash, signature []byte) bool {
	public, ok := p[key]
	return ok && ed25519.Verify(public, signedText(number, hash), signature)
}
