package cli

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/parley-server/parley/client"
	"github.com/parley-server/parley/internal/store/callback"
)

func (c *command) listen() *cobra.Command {
	var to string
	var printSecret bool
	cmd := &cobra.Command{
		Use:   "listen",
		Short: "forward callbacks to a local server",
		Example: `  parley listen --forward-to http://localhost:3000/hooks/parley
  export WEBHOOK_SECRET=$(parley listen --print-secret)`,
		Long: `A Parley server calls nothing that is not public. In development give a message a callback
that no server can be: https://listen.invalid/ and whatever you like behind it. What is
reported to it is forwarded from here, to the address of --forward-to, until Ctrl-C. Nothing
is tried again; parley callbacks redeliver sends a report once more.

The requests are the same that a public receiver gets, signed with a secret of their own:
that of --print-secret, which belongs to the API key and stays the same. Push notifications
of A2A are application/json here, and have neither X-A2A-Notification-Token nor Authorization:
the server shows what they hold to nobody. Let your receiver trust the signature instead.`,
		Args: nothing, Annotations: map[string]string{ownOutput: "a line for each forwarded callback"},
		RunE: func(cmd *cobra.Command, _ []string) error {
			target, err := c.target(cmd)
			if err != nil {
				return err
			}
			f := &forwarder{c: c, to: to, secret: listenSecret(target.APIKey)}
			if printSecret {
				fmt.Fprintln(c.Stdout, callback.FormatSecret(f.secret))
				return nil
			}
			if u, err := url.Parse(to); err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
				return usage(cmd, "--forward-to "+strconv.Quote(to)+" is no address.", "It takes one such as http://localhost:3000/hooks/parley.")
			}
			return c.remotely(f.run)(cmd, nil)
		},
	}
	remoteFlags(cmd)
	cmd.Flags().StringVar(&to, "forward-to", "", "where to: http://localhost:3000/hooks/parley")
	cmd.Flags().BoolVar(&printSecret, "print-secret", false, "print the signing secret, and do nothing else")
	return cmd
}

// listenSecret is the secret that forwarded callbacks are signed with. It is derived
// from the key, so that it is the same every time and nothing must be kept.
func listenSecret(key string) []byte {
	mac := hmac.New(sha256.New, []byte(key))
	mac.Write([]byte("parley listen"))
	return mac.Sum(nil)
}

// forwarder brings reports that no receiver can get to one on this machine.
type forwarder struct {
	c      *command
	to     string
	secret []byte
	http   http.Client
	seen   map[string]bool // at the last look, by webhook-id and attempt
}

// run looks once a second for reports that the server did not send.
func (f *forwarder) run(ctx context.Context, remote *client.Client, _ []string) error {
	f.http = http.Client{Timeout: 15 * time.Second, Transport: &http.Transport{DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	if _, err := f.news(ctx, remote); err != nil { // what is there already is old
		return err
	}
	fmt.Fprintf(f.c.Stderr, "Forwarding what is reported to https://listen.invalid/ to %s, signed with %s. Ctrl-C ends it.\n", f.to, callback.FormatSecret(f.secret))
	return f.c.poll(ctx, func(ctx context.Context) error {
		news, err := f.news(ctx, remote)
		for _, d := range news {
			if err == nil {
				err = f.forward(ctx, remote, d)
			}
			if err != nil {
				delete(f.seen, attempt(d)) // it is new at the next look, too
			}
		}
		return err
	})
}

// news are the reports that were made since the last look, oldest first. It looks at
// the newest hundred.
func (f *forwarder) news(ctx context.Context, remote *client.Client) (news []client.Delivery, err error) {
	page, err := remote.Deliveries(ctx, client.DeliveryQuery{Status: "failed", Limit: 100})
	if err != nil {
		return nil, err
	}
	seen := make(map[string]bool)
	for _, d := range slices.Backward(page.Data) {
		if d.LastAttempt == nil || d.LastAttempt.Error != callback.NotSent {
			continue
		}
		name := attempt(d)
		if seen[name] = true; !f.seen[name] {
			news = append(news, d)
		}
	}
	f.seen = seen
	return news, nil
}

// attempt names a report as it was last tried.
func attempt(d client.Delivery) string {
	return d.WebhookID + "/" + strconv.Itoa(d.LastAttempt.N)
}

// forward sends one callback and reports the outcome.
func (f *forwarder) forward(ctx context.Context, remote *client.Client, d client.Delivery) error {
	cb, err := remote.Callback(ctx, d.CallbackID)
	if err != nil {
		return err
	}
	for _, full := range cb.Deliveries {
		if full.WebhookID != d.WebhookID {
			continue
		}
		came := f.post(ctx, d.WebhookID, full.Payload)
		fmt.Fprintf(f.c.Stdout, "%s   <-- [%s] POST %s [%s]\n", time.Now().Format(time.TimeOnly), came, f.to, plainLine(d.Type))
	}
	return nil
}

// post is one signed request; it returns the status, or why there is none.
func (f *forwarder) post(ctx context.Context, id string, body []byte) string {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, f.to, bytes.NewReader(body))
	if err != nil {
		return sentence(err)
	}
	callback.Sign(r.Header, [][]byte{f.secret}, id, time.Now(), body)
	res, err := f.http.Do(r)
	if err != nil {
		if op, ok := errors.AsType[*net.OpError](err); ok {
			return op.Err.Error()
		}
		return "no answer"
	}
	defer res.Body.Close()
	_, _ = io.CopyN(io.Discard, res.Body, 4<<10)
	return strconv.Itoa(res.StatusCode)
}
