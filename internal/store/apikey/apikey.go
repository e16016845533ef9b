// Package apikey owns the API keys of workspaces, and their webhook_tokens and browser tokens,
// which are keys too. A key is shown once and stored as a hash; a mistyped one is rejected without
// a query; a revoked one stops working within a second on every replica, open streams included.
package apikey

import (
	"crypto/rand"
	"crypto/sha256"
	"hash/crc32"
	"strings"
)

// A key consists of a prefix, 8 characters that name it, 32 secret characters and 6 that detect a
// typo. Scanners find it by its prefix, which also names its kind.
const (
	keyPrefix     = "prl_"
	tokenPrefix   = "whtok_" // prefix of a webhook_token
	browserPrefix = "brtok_" // prefix of a browser token
	idLen         = 8
	secretLen     = 32
	checksumLen   = 6
	bodyLen       = idLen + secretLen + checksumLen
)

const base62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

// Parse splits a key or a token into its name and its secret. ok is false for every text that this
// package cannot have made.
func Parse(key string) (id, secret string, ok bool) {
	prefix := prefixOf(key)
	if len(key) != len(prefix)+bodyLen || !strings.HasPrefix(key, prefix) {
		return "", "", false
	}
	signed := key[:len(key)-checksumLen]
	if keyChecksum(signed) != key[len(signed):] {
		return "", "", false
	}
	body := signed[len(prefix):]
	for i := range len(body) {
		if strings.IndexByte(base62, body[i]) < 0 {
			return "", "", false
		}
	}
	return body[:idLen], body[idLen:], true
}

// prefixOf returns the prefix of the kind of key that a bearer value looks like.
func prefixOf(bearer string) string {
	for _, prefix := range []string{tokenPrefix, browserPrefix} {
		if strings.HasPrefix(bearer, prefix) {
			return prefix
		}
	}
	return keyPrefix
}

// kindPrefix returns the prefix of a stored key.
func kindPrefix(webhook, browser bool) string {
	switch {
	case webhook:
		return tokenPrefix
	case browser:
		return browserPrefix
	}
	return keyPrefix
}

// generateSecret makes a new key.
func generateSecret(prefix string) (key, id, secret string) {
	id, secret = randomText(idLen), randomText(secretLen)
	body := prefix + id + secret
	return body + keyChecksum(body), id, secret
}

// keyChecksum returns the CRC-32 of a key's other characters, in base 62.
func keyChecksum(body string) string {
	sum := crc32.ChecksumIEEE([]byte(body))
	var out [checksumLen]byte
	for i := len(out) - 1; i >= 0; i-- {
		out[i] = base62[sum%62]
		sum /= 62
	}
	return string(out[:])
}

// randomText returns n random characters, each with the same probability.
func randomText(n int) string {
	out := make([]byte, 0, n)
	var buf [64]byte
	for len(out) < n {
		_, _ = rand.Read(buf[:])
		for _, b := range buf {
			if b < 248 && len(out) < n { // 248 = 4 × 62
				out = append(out, base62[b%62])
			}
		}
	}
	return string(out)
}

// hashSecret returns the stored hash of a secret: 190 random bits need no slow hash.
func hashSecret(secret string) []byte {
	sum := sha256.Sum256([]byte(secret))
	return sum[:]
}
