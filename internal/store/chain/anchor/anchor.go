// Package anchor stores heads of the chain outside of the database: in a file, at a webhook, or in a
// bucket with the API of S3. It promises that a secret is in no error and no name of an anchor. It
// never reads a head back.
package anchor

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"

	"github.com/parley-server/parley/internal/store/chain"
)

// Options are what the addresses of anchors do not have.
type Options struct {
	Secret string // signs the requests to webhooks if it begins with whsec_, else it is their bearer token; "": none
	S3     S3     // where buckets are
	Client *http.Client
}

// Parse returns the anchors of a list, separated by commas: absolute paths of files,
// https://… and s3://bucket/prefix.
func Parse(list string, opt Options) (all []chain.HeadStore, err error) {
	if opt.Client == nil {
		opt.Client = newClient()
	}
	var wrong []error
	for address := range strings.SplitSeq(list, ",") {
		if address = strings.TrimSpace(address); address == "" {
			continue
		}
		to, err := parse(address, opt)
		if err != nil {
			wrong = append(wrong, err)
			continue
		}
		all = append(all, to)
	}
	return all, errors.Join(wrong...)
}

func parse(address string, opt Options) (chain.HeadStore, error) {
	scheme, _, isURL := strings.Cut(address, "://")
	switch {
	case !isURL && !filepath.IsAbs(address):
		return nil, fmt.Errorf("the path %q is not absolute. Use the absolute path of a file, https:// or s3://", address)
	case !isURL:
		return newFile(address), nil
	}
	u, err := url.Parse(address)
	switch {
	case err != nil || u.Host == "":
		return nil, fmt.Errorf("an address with %s:// is invalid", scheme)
	case u.User != nil:
		return nil,
			fmt.Errorf(
				"the address of %s has a user or a password. Use PARLEY_AUDIT_HEADS_SECRET or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY", u.Host)
	}
	switch scheme {
	case "http", "https":
		return newWebhook(u, opt)
	case "s3":
		return newBucket(u, opt)
	}
	return nil, fmt.Errorf("%s:// is not supported. Use the absolute path of a file, https:// or s3://", scheme)
}

// newClient returns a client that follows no redirect: the head would be stored elsewhere.
func newClient() *http.Client {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.DisableKeepAlives = true // one request a minute
	return &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// withoutURL removes the address of a request from its error: a query can have a secret.
func withoutURL(err error) error {
	if e, ok := errors.AsType[*url.Error](err); ok {
		return e.Err
	}
	return err
}
