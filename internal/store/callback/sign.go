package callback

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
)

// SecretPrefix and the sizes are defined by Standard Webhooks.
const (
	SecretPrefix = "whsec_"
	secretSize   = 32

	minSecretSize = 24
)

// FormatSecret returns a secret in the form that users copy: whsec_…
func FormatSecret(secret []byte) string {
	return SecretPrefix + base64.StdEncoding.EncodeToString(secret)
}

// ParseSecret is the reverse of FormatSecret.
func ParseSecret(text string) ([]byte, error) {
	secret, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(text, SecretPrefix))
	if err != nil || len(secret) < minSecretSize {
		return nil, fmt.Errorf("a secret that begins with %s has at least %d bytes in base64 after it", SecretPrefix, minSecretSize)
	}
	return secret, nil
}

func newSecret() []byte {
	secret := make([]byte, secretSize)
	_, _ = rand.Read(secret) // never fails
	return secret
}

// SignRequest signs the request of a tool call like a report, with the secrets of a workspace.
func (s *Store) SignRequest(ctx context.Context, workspace uuid.UUID, h http.Header, id string, body []byte) error {
	secrets, err := s.openSecrets(ctx, workspace)
	if err == nil {
		signHeader(h, secrets, id, time.Now(), body)
	}
	return err
}

// Sign sets the headers of a report: its type, its id, its time, and a signature for each secret.
func Sign(h http.Header, secrets [][]byte, id string, at time.Time, body []byte) {
	h.Set("Content-Type", "application/json")
	signHeader(h, secrets, id, at, body)
}

func signHeader(h http.Header, secrets [][]byte, id string, at time.Time, body []byte) {
	h.Set("webhook-id", id)
	h.Set("webhook-timestamp", strconv.FormatInt(at.Unix(), 10))
	h.Set("webhook-signature", signatureHeader(secrets, id, at, body))
}

// signatureHeader returns the header webhook-signature: one signature for each secret.
func signatureHeader(secrets [][]byte, id string, at time.Time, body []byte) string {
	all := make([]string, len(secrets))
	for i, secret := range secrets {
		mac := hmac.New(sha256.New, secret)
		mac.Write([]byte(id + "." + strconv.FormatInt(at.Unix(), 10) + "."))
		mac.Write(body)
		all[i] = "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
	}
	return strings.Join(all, " ")
}
