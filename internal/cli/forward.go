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

func (c *command) listenCommand() *cobra.Command {
	var to string
	var printSecret bool
	cmd := &cobra.Command{
		Use:   "listen",
		Short: "forward callbacks to a local server",
		Example: `  parley listen --forward-to http://localhost:3000/hooks/parley
  export WEBHOOK_SECRET=$(parley listen --print-secret)`,
		Long: `A Parley server calls only public addresses. In development, give messages the callback
https://listen.invalid/, with any path. This command forwards the reports of such callbacks to the
address of --forward-to until Ctrl-C. It does not retry; parley callbacks redeliver sends a report
again.

A request equals that of a public receiver, but it is signed with the secret of --print-secret, which
is derived from the API key and does not change. Push notifications of A2A are application/json here
and lack X-A2A-Notification-Token and Authorization, because the server does not reveal them. Verify
the signature instead.`,
		Args: nothing, Annotations: map[string]string{ownOutput: "a line for each forwarded callback"},
		RunE: func(cmd *cobra.Command, _ []string) error {
			target, err := c.targetServer(cmd)
			if err != nil {
				return err
			}
			f := &forwarder{c: c, to: to, secret: listenSecret(target.APIKey)}
			if printSecret {
				fmt.Fprintln(c.Stdout, callback.FormatSecret(f.secret))
				return nil
			}
			if u, err := url.Parse(to); err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
				return usageError(cmd, "--forward-to "+strconv.Quote(to)+" is not an address.",
					"It takes an address such as http://localhost:3000/hooks/parley.")
			}
			return c.runRemotely(f.pollReports)(cmd, nil)
		},
	}
	remoteFlags(cmd)
	cmd.Flags().StringVar(&to, "forward-to", "", "the receiver, such as http://localhost:3000/hooks/parley")
	cmd.Flags().BoolVar(&printSecret, "print-secret", false, "print only the signing secret")
	return cmd
}

// listenSecret returns the secret that signs forwarded callbacks. It is derived from the key, so
// that it is always the same and need not be stored.
func listenSecret(key string) []byte {
	mac := hmac.New(sha256.New, []byte(key))
	mac.Write([]byte("parley listen"))
	return mac.Sum(nil)
}

// forwarder forwards reports that the server cannot deliver to a receiver on this machine.
type forwarder struct {
	c      *command
	to     string
	secret []byte
	http   http.Client
	seen   map[string]bool // at the last poll, by webhook-id and attempt
}

// pollReports polls once a second for reports that the server did not send.
func (f *forwarder) pollReports(ctx context.Context, remote *client.Client, _ []string) error {
	f.http = http.Client{Timeout: 15 * time.Second, Transport: &http.Transport{DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	if _, err := f.newReports(ctx, remote); err != nil { // existing reports are not new
		return err
	}
	fmt.Fprintf(f.c.Stderr, "Forwarding callbacks of https://listen.invalid/ to %s. The secret that --print-secret prints signs them. "+
		"Press Ctrl-C to stop.\n", f.to)
	return f.c.pollServer(ctx, func(ctx context.Context) error {
		news, err := f.newReports(ctx, remote)
		for _, d := range news {
			if err == nil {
				err = f.forwardReport(ctx, remote, d)
			}
			if err != nil {
				delete(f.seen, attemptKey(d)) // retry it at the next poll
			}
		}
		return err
	})
}

// newReports returns the reports since the last poll, oldest first, among the newest hundred.
func (f *forwarder) newReports(ctx context.Context, remote *client.Client) (news []client.Delivery, err error) {
	page, err := remote.Deliveries(ctx, client.DeliveryQuery{Status: "failed", Limit: 100})
	if err != nil {
		return nil, err
	}
	seen := make(map[string]bool)
	for _, d := range slices.Backward(page.Data) {
		if d.LastAttempt == nil || d.LastAttempt.Error != callback.NotSent {
			continue
		}
		name := attemptKey(d)
		if seen[name] = true; !f.seen[name] {
			news = append(news, d)
		}
	}
	f.seen = seen
	return news, nil
}

// attemptKey identifies a report with its last attempt.
func attemptKey(d client.Delivery) string {
	return d.WebhookID + "/" + strconv.Itoa(d.LastAttempt.N)
}

// forwardReport sends one callback and reports the outcome.
func (f *forwarder) forwardReport(ctx context.Context, remote *client.Client, d client.Delivery) error {
	cb, err := remote.Callback(ctx, d.CallbackID)
	if err != nil {
		return err
	}
	for _, full := range cb.Deliveries {
		if full.WebhookID != d.WebhookID {
			continue
		}
		came := f.postReport(ctx, d.WebhookID, full.Payload)
		fmt.Fprintf(f.c.Stdout, "%s   <-- [%s] POST %s [%s]\n", time.Now().Format(time.TimeOnly), came, f.to, plainLine(d.Type))
	}
	return nil
}

// postReport sends one signed request and returns the status or the error.
func (f *forwarder) postReport(ctx context.Context, id string, body []byte) string {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, f.to, bytes.NewReader(body))
	if err != nil {
		return errorSentence(err)
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
