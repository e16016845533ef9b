package account

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	_ "embed"
	"encoding/base64"
	"fmt"
	"strings"
	"sync"
	"unicode/utf8"

	"golang.org/x/crypto/argon2"

	"github.com/parley-server/parley/internal/fault"
)

// The cost of a password hash: 19 MiB and about 30 ms.
const (
	argonTime    = 2
	argonMemory  = 19 << 10 // KiB
	argonThreads = 1
	argonKey     = 32
)

// The lengths of passwords.
const (
	minPassword = 12
	maxPassword = 256
)

// hashPassword returns the hash of a password in PHC format. Few run at once.
func (s *Store) hashPassword(ctx context.Context, password string) (string, error) {
	var salt [16]byte
	_, _ = rand.Read(salt[:])
	sum, err := s.deriveKey(ctx, password, salt[:], argonTime, argonMemory, argonThreads)
	if err != nil {
		return "", err
	}
	enc := base64.RawStdEncoding
	return fmt.Sprintf("$argon2id$v=%d$m=%d,t=%d,p=%d$%s$%s", argon2.Version, argonMemory, argonTime, argonThreads,
		enc.EncodeToString(salt[:]), enc.EncodeToString(sum)), nil
}

func (s *Store) deriveKey(ctx context.Context, password string, salt []byte, time, memory uint32, threads uint8) ([]byte, error) {
	select {
	case s.hashing <- struct{}{}:
		defer func() { <-s.hashing }()
	case <-ctx.Done():
		return nil, fmt.Errorf("hash a password: %w", context.Cause(ctx))
	}
	return argon2.IDKey([]byte(password), salt, time, memory, threads, argonKey), nil
}

// dummyHash is compared with the passwords of unknown users, so that the answer takes as long.
const dummyHash = "$argon2id$v=19$m=19456,t=2,p=1$AAAAAAAAAAAAAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"

// passwordMatches compares a password with a hash.
func (s *Store) passwordMatches(ctx context.Context, password, hash string) (bool, error) {
	var version int
	var memory, time uint32
	var threads uint8
	parts := strings.Split(hash, "$")
	if len(parts) != 6 || parts[1] != "argon2id" {
		return false, fmt.Errorf("unknown format of a password hash")
	}
	if _, err := fmt.Sscanf(parts[2]+" "+parts[3], "v=%d m=%d,t=%d,p=%d", &version, &memory, &time, &threads); err != nil {
		return false, fmt.Errorf("read a password hash: %w", err)
	}
	salt, err := base64.RawStdEncoding.DecodeString(parts[4])
	if err != nil {
		return false, fmt.Errorf("read a password hash: %w", err)
	}
	want, err := base64.RawStdEncoding.DecodeString(parts[5])
	if err != nil {
		return false, fmt.Errorf("read a password hash: %w", err)
	}
	got, err := s.deriveKey(ctx, password, salt, time, memory, threads)
	return err == nil && subtle.ConstantTimeCompare(got, want) == 1, err
}

//go:embed common.txt
var commonText string

var common = sync.OnceValue(func() map[string]bool {
	words := make(map[string]bool)
	for word := range strings.FieldsSeq(commonText) {
		words[word] = true
	}
	return words
})

// leet undoes the usual replacements of letters.
var leet = strings.NewReplacer("0", "o", "1", "i", "3", "e", "4", "a", "5", "s", "7", "t", "@", "a", "$", "s", "!", "i")

// CheckPassword rejects passwords that are short, common or the user's own address.
func CheckPassword(password, email string) error {
	violation := func(rule, text string) error {
		return fault.Invalid(fault.Violation{Param: "/password", Rule: rule, Message: text})
	}
	switch {
	case !utf8.ValidString(password) || len(password) > maxPassword:
		return violation("max_length", fmt.Sprintf("A password is text of at most %d bytes.", maxPassword))
	case utf8.RuneCountInString(password) < minPassword:
		return violation("min_length", fmt.Sprintf("Use at least %d characters.", minPassword))
	case isCommon(password, email):
		return violation("common", "This password is easy to guess. Use several words that do not belong together.")
	}
	return nil
}

// isCommon reports whether a password is a common one, a common word with digits and signs around
// it, a few characters repeated, or made of the address.
func isCommon(password, email string) bool {
	plain := strings.ToLower(password)
	letters := map[rune]bool{}
	for _, r := range plain {
		letters[r] = true
	}
	if len(letters) < 5 || common()[plain] {
		return true
	}
	local, domain, _ := strings.Cut(strings.ToLower(email), "@")
	company, _, _ := strings.Cut(domain, ".")
	const around = "0123456789 !@#$%^&*()_-+=.,?"
	for _, text := range []string{plain, leet.Replace(plain), leet.Replace(strings.Trim(plain, around))} {
		core := strings.Trim(text, around)
		if core == "" || common()[core] || core == local || core == company || text == strings.ToLower(email) {
			return true
		}
		if half := len(core) / 2; len(core)%2 == 0 && core[:half] == core[half:] && common()[core[:half]] {
			return true
		}
	}
	return false
}
