package vault

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
)

// A sealed envelope is
//
//	version 1 · length of the key id · key id · wrapped key (60) · ciphertext (28 + n)
//
// Each envelope has its own data key, wrapped by the master key with that id. The ciphertext is
// bound to purpose and about, the wrapping only to the head, so that Rewrap needs neither.
// Migration 00004 reads the head in SQL.
const (
	envelopeVersion = 1
	gcmOverhead     = 12 + 16 // nonce and tag
	wrappedSize     = keySize + gcmOverhead
)

var (
	// ErrNotOpened means that an envelope is damaged, or was sealed for another
	// purpose or about something else.
	ErrNotOpened = errors.New("vault: the envelope does not open")
	// ErrUnknownKey means that an envelope was sealed under a key that is not in the
	// keyring.
	ErrUnknownKey = errors.New("vault: sealed under a master key that is not in the keyring")
)

// Seal encrypts plain under the newest key. The envelope opens only with the same purpose and
// about, in the same order: the use of the value and its owner.
func (k *Keyring) Seal(plain []byte, purpose string, about ...string) ([]byte, error) {
	if k == nil || len(k.keys) == 0 {
		return nil, errNoKey
	}
	dek := make([]byte, keySize)
	_, _ = rand.Read(dek) // never fails
	sealed, err := k.keys[0].wrapKey(dek)
	if err != nil {
		return nil, err
	}
	payload, err := newGCM(dek)
	if err != nil {
		return nil, err
	}
	return payload.Seal(sealed, nil, plain, boundData(purpose, about)), nil
}

// Open is the reverse of Seal, or fails with ErrNotOpened or ErrUnknownKey.
func (k *Keyring) Open(sealed []byte, purpose string, about ...string) ([]byte, error) {
	dek, ciphertext, err := k.unwrapKey(sealed)
	if err != nil {
		return nil, err
	}
	payload, err := newGCM(dek)
	if err != nil {
		return nil, err
	}
	plain, err := payload.Open(nil, nil, ciphertext, boundData(purpose, about))
	if err != nil {
		return nil, ErrNotOpened
	}
	return plain, nil
}

// Rewrap wraps an envelope under the newest key without decrypting its content; changed is false if
// it already is.
func (k *Keyring) Rewrap(sealed []byte) (rewrapped []byte, changed bool, err error) {
	dek, ciphertext, err := k.unwrapKey(sealed)
	if err != nil {
		return nil, false, err
	}
	if id, _ := SealedUnder(sealed); id == k.keys[0].id {
		return sealed, false, nil
	}
	head, err := k.keys[0].wrapKey(dek)
	if err != nil {
		return nil, false, err
	}
	return append(head, ciphertext...), true, nil
}

// SealedUnder returns the id of an envelope's master key.
func SealedUnder(sealed []byte) (id string, ok bool) {
	if len(sealed) < 2 || sealed[0] != envelopeVersion || len(sealed) < 2+int(sealed[1])+wrappedSize+gcmOverhead {
		return "", false
	}
	return string(sealed[2 : 2+int(sealed[1])]), true
}

// wrapKey returns the beginning of an envelope: its head and the wrapped data key.
func (m masterKey) wrapKey(dek []byte) ([]byte, error) {
	wrapping, err := m.wrappingCipher()
	if err != nil {
		return nil, err
	}
	head := append([]byte{envelopeVersion, byte(len(m.id))}, m.id...)
	return wrapping.Seal(head, nil, dek, head), nil
}

// unwrapKey returns the data key of an envelope and its ciphertext.
func (k *Keyring) unwrapKey(sealed []byte) (dek, ciphertext []byte, err error) {
	id, ok := SealedUnder(sealed)
	if !ok {
		return nil, nil, ErrNotOpened
	}
	if k == nil {
		return nil, nil, errNoKey
	}
	master, ok := k.findKey(id)
	if !ok {
		return nil, nil, fmt.Errorf("%w: %s", ErrUnknownKey, id)
	}
	wrapping, err := master.wrappingCipher()
	if err != nil {
		return nil, nil, err
	}
	head, rest := sealed[:2+len(id)], sealed[2+len(id):]
	if dek, err = wrapping.Open(nil, nil, rest[:wrappedSize], head); err != nil {
		return nil, nil, ErrNotOpened
	}
	return dek, rest[wrappedSize:], nil
}

func (m masterKey) wrappingCipher() (cipher.AEAD, error) { return newGCM(m.deriveKey("wrap", "")) }

func newGCM(key []byte) (cipher.AEAD, error) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, fmt.Errorf("make a cipher: %w", err)
	}
	return cipher.NewGCMWithRandomNonce(block)
}

// boundData is the additional data of a payload.
func boundData(purpose string, about []string) []byte {
	return joinFields(append([]string{"parley/vault/v1", "seal", purpose}, about...)...)
}

// joinFields joins strings so that no two lists of them give the same bytes.
func joinFields(parts ...string) []byte {
	out := binary.BigEndian.AppendUint32(nil, uint32(len(parts)))
	for _, p := range parts {
		out = binary.BigEndian.AppendUint32(out, uint32(len(p)))
		out = append(out, p...)
	}
	return out
}
