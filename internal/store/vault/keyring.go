package vault

import (
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// keySize is the size of a master key, and of every derived or generated key.
const keySize = 32

// Keyring holds the master keys, newest first: the newest seals, every one opens. ParseKeys returns
// it; it never changes and is safe for concurrent use.
type Keyring struct {
	keys []masterKey
}

type masterKey struct {
	id     string
	secret Value
}

var keyID = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,31}$`)

// GenerateKey returns a new master key in the format of ParseKeys.
func GenerateKey() string {
	var secret [keySize]byte
	_, _ = rand.Read(secret[:]) // never fails
	id := "k" + strings.ToLower(rand.Text()[:8])
	return id + ":" + base64.StdEncoding.EncodeToString(secret[:])
}

// ParseKeys parses master keys, newest first: each is id:base64 of 32 bytes, separated by blanks,
// lines or commas; text after # on a line is a comment. Errors never quote the text.
func ParseKeys(text string) (*Keyring, error) {
	var k Keyring
	for line := range strings.Lines(text) {
		line, _, _ = strings.Cut(line, "#")
		for _, word := range strings.FieldsFunc(line, func(r rune) bool { return strings.ContainsRune(" \t\r\n,", r) }) {
			key, err := parseKey(word)
			if err != nil {
				return nil, fmt.Errorf("key %d %w", len(k.keys)+1, err)
			}
			if _, twice := k.findKey(key.id); twice {
				return nil, fmt.Errorf("two keys are called %s", key.id)
			}
			k.keys = append(k.keys, key)
		}
	}
	if len(k.keys) == 0 {
		return nil, errNoKey
	}
	return &k, nil
}

var errNoKey = errors.New("vault: there is no master key")

func parseKey(word string) (masterKey, error) {
	id, text, _ := strings.Cut(word, ":")
	secret, err := base64.StdEncoding.Strict().DecodeString(text)
	if err != nil || len(secret) != keySize || !keyID.MatchString(id) {
		return masterKey{}, errors.New("is not id:base64 of 32 bytes, as `parley vault key` prints it")
	}
	return masterKey{id, NewValue(secret)}, nil
}

// IDs returns the ids of the keys, newest first.
func (k *Keyring) IDs() []string {
	ids := make([]string, len(k.keys))
	for i, key := range k.keys {
		ids[i] = key.id
	}
	return ids
}

// Derive derives a separate key for a purpose, such as signing addresses, from the newest master
// key. The id must be stored with the signed data: DeriveFrom returns the same key for it while
// that master key is in the keyring.
func (k *Keyring) Derive(purpose string) (id string, key []byte) {
	newest := k.keys[0]
	return newest.id, newest.deriveKey("derive", purpose)
}

// DeriveFrom derives the key for a purpose from a named master key.
func (k *Keyring) DeriveFrom(id, purpose string) (key []byte, ok bool) {
	master, ok := k.findKey(id)
	if !ok {
		return nil, false
	}
	return master.deriveKey("derive", purpose), true
}

func (k *Keyring) findKey(id string) (masterKey, bool) {
	for _, key := range k.keys {
		if key.id == id {
			return key, true
		}
	}
	return masterKey{}, false
}

// deriveKey derives a key by HKDF. The master key itself is used for nothing else, so that no two
// uses share a key.
func (m masterKey) deriveKey(use, purpose string) []byte {
	key, err := hkdf.Key(sha256.New, m.secret.Reveal(), nil, string(joinFields("parley/vault/v1", use, purpose)), keySize)
	if err != nil {
		panic(err) // only for keys longer than 255 hashes
	}
	return key
}
