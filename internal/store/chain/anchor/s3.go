package anchor

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/md5" // S3 demands it beside object lock; it protects nothing
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/parley-server/parley/internal/store/chain"
)

// S3 is where buckets are, and who writes to them.
type S3 struct {
	Endpoint string // "": that of AWS in the region
	Region   string
	Key      string // id of the access key
	Secret   string
	Token    string // of a session; "": none
}

// bucket keeps one object for each head, below prefix and the day.
type bucket struct {
	S3
	base   *url.URL // of the endpoint
	name   string
	prefix string
	mode   string // of object lock; "": none
	retain int    // days
	client *http.Client
}

func newBucket(u *url.URL, opt Options) (*bucket, error) {
	b := &bucket{S3: opt.S3, name: u.Host, prefix: strings.Trim(u.Path, "/"), client: opt.Client}
	if b.Key == "" || b.S3.Secret == "" {
		return nil, errors.New("s3:// needs AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY")
	}
	if b.Endpoint == "" {
		b.Endpoint = "https://s3." + b.Region + ".amazonaws.com"
	}
	var err error
	if b.base, err = url.Parse(b.Endpoint); err != nil || b.base.Host == "" || b.base.Scheme != "http" && b.base.Scheme != "https" {
		return nil, errors.New("AWS_ENDPOINT_URL is not an address with http:// or https://")
	}
	query := u.Query()
	for name := range query {
		if name != "retain-days" && name != "mode" {
			return nil, fmt.Errorf("%q is not a parameter of s3://. It has retain-days and mode", name)
		}
	}
	if days := query.Get("retain-days"); days != "" {
		if b.retain, err = strconv.Atoi(days); err != nil || b.retain < 1 || b.retain > 36_500 {
			return nil, fmt.Errorf("retain-days is %q. It takes 1 to 36500", days)
		}
		b.mode = "COMPLIANCE"
	}
	if mode := strings.ToUpper(query.Get("mode")); mode != "" {
		if b.retain == 0 || mode != "COMPLIANCE" && mode != "GOVERNANCE" {
			return nil, fmt.Errorf("mode is %q. It takes compliance or governance, beside retain-days", query.Get("mode"))
		}
		b.mode = mode
	}
	return b, nil
}

func (b *bucket) String() string {
	return strings.TrimSuffix("s3://"+b.name+"/"+b.prefix, "/")
}

// StoreHead stores a head as an object of its own. An object that exists is kept: its name has the
// hash of the head.
func (b *bucket) StoreHead(ctx context.Context, h chain.Head) error {
	body, err := json.Marshal(h)
	if err != nil {
		return err
	}
	r, err := b.newRequest(ctx, http.MethodPut, h.At.UTC().Format(time.DateOnly)+"/"+nameOf(h)+".json", body)
	if err != nil {
		return err
	}
	sum := md5.Sum(body)
	r.Header.Set("Content-MD5", base64.StdEncoding.EncodeToString(sum[:]))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("If-None-Match", "*")
	now := time.Now().UTC()
	if b.mode != "" {
		r.Header.Set("X-Amz-Object-Lock-Mode", b.mode)
		r.Header.Set("X-Amz-Object-Lock-Retain-Until-Date", now.AddDate(0, 0, b.retain).Format(time.RFC3339))
	}
	b.signRequest(r, body, now)
	status, code, err := b.send(r)
	if err != nil || status/100 == 2 || status == http.StatusPreconditionFailed {
		return err
	}
	return refusal(status, code)
}

// Check requests an object that does not exist. A key that may only put objects is denied that after
// its signature was accepted.
func (b *bucket) Check(ctx context.Context) (string, error) {
	r, err := b.newRequest(ctx, http.MethodGet, "parley-doctor", nil)
	if err != nil {
		return "", err
	}
	b.signRequest(r, nil, time.Now().UTC())
	status, code, err := b.send(r)
	if err != nil {
		return "", err
	}
	if status/100 == 2 || code == "NoSuchKey" || code == "AccessDenied" {
		return "is reached, and the key is accepted", nil
	}
	return "", refusal(status, code)
}

// newRequest returns a request for an object below the prefix.
func (b *bucket) newRequest(ctx context.Context, method, name string, body []byte) (*http.Request, error) {
	to := *b.base
	to.Path = strings.TrimSuffix(to.Path, "/") + "/" + b.name + "/" + strings.TrimPrefix(b.prefix+"/"+name, "/")
	to.RawPath = escapePath(to.Path)
	r, err := http.NewRequestWithContext(ctx, method, to.String(), bytes.NewReader(body))
	return r, withoutURL(err)
}

// send returns the status of the answer, and the code of its error.
func (b *bucket) send(r *http.Request) (status int, code string, err error) {
	res, err := b.client.Do(r)
	if err != nil {
		return 0, "", withoutURL(err)
	}
	defer res.Body.Close()
	text, _ := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	var refused struct{ Code string }
	_ = xml.Unmarshal(text, &refused)
	return res.StatusCode, refused.Code, nil
}

func refusal(status int, code string) error {
	return fmt.Errorf("the bucket answered %s", strings.TrimSpace(fmt.Sprintf("%d %s %s", status, http.StatusText(status), code)))
}

// signRequest signs a request with Signature Version 4, all of its headers included.
func (b *bucket) signRequest(r *http.Request, body []byte, now time.Time) {
	const algorithm = "AWS4-HMAC-SHA256"
	stamp, day := now.Format("20060102T150405Z"), now.Format("20060102")
	content := sha256.Sum256(body)
	r.Header.Set("X-Amz-Date", stamp)
	r.Header.Set("X-Amz-Content-Sha256", hex.EncodeToString(content[:]))
	if b.Token != "" {
		r.Header.Set("X-Amz-Security-Token", b.Token)
	}
	values := map[string]string{"host": r.URL.Host}
	names := []string{"host"}
	for name := range r.Header {
		names = append(names, strings.ToLower(name))
		values[strings.ToLower(name)] = strings.TrimSpace(r.Header.Get(name))
	}
	slices.Sort(names)
	signed := strings.Join(names, ";")
	var canonical strings.Builder
	canonical.WriteString(r.Method + "\n" + r.URL.EscapedPath() + "\n\n")
	for _, name := range names {
		canonical.WriteString(name + ":" + values[name] + "\n")
	}
	canonical.WriteString("\n" + signed + "\n" + hex.EncodeToString(content[:]))
	request := sha256.Sum256([]byte(canonical.String()))
	scope := day + "/" + b.Region + "/s3/aws4_request"
	key := []byte("AWS4" + b.S3.Secret)
	for _, part := range []string{day, b.Region, "s3", "aws4_request"} {
		key = mac(key, part)
	}
	signature := mac(key, algorithm+"\n"+stamp+"\n"+scope+"\n"+hex.EncodeToString(request[:]))
	r.Header.Set("Authorization", fmt.Sprintf("%s Credential=%s/%s, SignedHeaders=%s, Signature=%x", algorithm, b.Key, scope, signed,
		signature))
}

func mac(key []byte, text string) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(text))
	return h.Sum(nil)
}

// escapePath escapes each byte that Signature Version 4 does not leave as it is.
func escapePath(path string) string {
	var out strings.Builder
	for _, c := range []byte(path) {
		if c == '/' || c == '-' || c == '_' || c == '.' || c == '~' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' {
			out.WriteByte(c)
			continue
		}
		fmt.Fprintf(&out, "%%%02X", c)
	}
	return out.String()
}
