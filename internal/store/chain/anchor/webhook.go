package anchor

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/parley-server/parley/internal/loopback"
	"github.com/parley-server/parley/internal/store/callback"
	"github.com/parley-server/parley/internal/store/chain"
)

// maxAnswer is how many bytes of a response are read.
const maxAnswer = 4 << 10

// webhook receives a head as a request with its JSON.
type webhook struct {
	to     *url.URL
	sign   []byte // signs requests as Standard Webhooks defines; nil: none
	bearer string
	client *http.Client
}

func newWebhook(u *url.URL, opt Options) (*webhook, error) {
	w := &webhook{to: u, bearer: opt.Secret, client: opt.Client}
	if strings.HasPrefix(opt.Secret, callback.SecretPrefix) {
		var err error
		if w.sign, err = callback.ParseSecret(opt.Secret); err != nil {
			return nil, fmt.Errorf("PARLEY_AUDIT_HEADS_SECRET: %w", err)
		}
		w.bearer = ""
	}
	if w.bearer != "" && u.Scheme == "http" && !loopback.IsHost(u.Hostname()) {
		return nil,
			fmt.Errorf("http://%s would receive PARLEY_AUDIT_HEADS_SECRET unencrypted. Use https://, or a secret that begins with %s",
				u.Host, callback.SecretPrefix)
	}
	return w, nil
}

// String leaves the path out: it can have a secret.
func (w *webhook) String() string { return w.to.Scheme + "://" + w.to.Host }

// Check sends a HEAD request without the secret. Any answer but that of a broken server or proxy shows
// that the address is reached.
func (w *webhook) Check(ctx context.Context) (string, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodHead, w.to.String(), nil)
	if err != nil {
		return "", withoutURL(err)
	}
	res, err := w.client.Do(r)
	if err != nil {
		return "", withoutURL(err)
	}
	res.Body.Close()
	if res.StatusCode >= 500 && res.StatusCode != http.StatusNotImplemented { // of the method HEAD
		return "", fmt.Errorf("the webhook answered %s", res.Status)
	}
	return fmt.Sprintf("is reached; it answers HEAD with %d", res.StatusCode), nil
}

// StoreHead sends a head. The same head always has the same webhook-id.
func (w *webhook) StoreHead(ctx context.Context, h chain.Head) error {
	body, err := json.Marshal(h)
	if err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, w.to.String(), bytes.NewReader(body))
	if err != nil {
		return withoutURL(err)
	}
	r.Header.Set("Content-Type", "application/json")
	if w.sign != nil {
		callback.Sign(r.Header, [][]byte{w.sign}, "head_"+nameOf(h), time.Now(), body)
	} else if w.bearer != "" {
		r.Header.Set("Authorization", "Bearer "+w.bearer)
	}
	res, err := w.client.Do(r)
	if err != nil {
		return withoutURL(err)
	}
	defer res.Body.Close()
	_, _ = io.CopyN(io.Discard, res.Body, maxAnswer)
	if res.StatusCode/100 != 2 {
		return fmt.Errorf("the webhook answered %s", res.Status)
	}
	return nil
}

// nameOf names a head by its number and a part of its hash: a log that was rewritten has other names.
func nameOf(h chain.Head) string { return fmt.Sprintf("%012d-%x", h.Number, h.Hash[:8]) }
