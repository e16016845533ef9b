package anchor_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/parley-server/parley/internal/store/chain"
	"github.com/parley-server/parley/internal/store/chain/anchor"
	"github.com/parley-server/parley/internal/testing/wait"
)

// head returns a head with a hash of its own.
func head(number int64) chain.Head {
	h := chain.Head{Number: number, Hash: make([]byte, 32), At: time.Date(2026, 11, 26, 10, 0, 0, 0, time.UTC), Key: "k1",
		Signature: make([]byte, 64)}
	_, _ = rand.Read(h.Hash)
	return h
}

func parseOne(t *testing.T, address string, opt anchor.Options) chain.HeadStore {
	t.Helper()
	all, err := anchor.Parse(address, opt)
	if err != nil || len(all) != 1 {
		t.Fatalf("%v, %v", all, err)
	}
	return all[0]
}

func TestAddressesAreParsed(t *testing.T) {
	t.Parallel()
	s3 := anchor.S3{Region: "eu-central-1", Key: "id", Secret: "hush"}
	all, err := anchor.Parse("/var/log/worm disk/heads.jsonl, "+
		"https://audit.example/heads/hush?token=hush,s3://bucket/parley/heads/?retain-days=400, s3://other", anchor.Options{S3: s3})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, a := range all {
		names = append(names, a.String())
	}
	if got := strings.Join(names, " "); got != "/var/log/worm disk/heads.jsonl https://audit.example s3://bucket/parley/heads s3://other" {
		t.Error(got)
	}
	for address, want := range map[string]string{
		"ftp://a":                         "ftp:// is not supported",
		"https://":                        "https:// is invalid",
		"https://u:hush@a":                "the address of a has a user or a password",
		"s3://b?retain-days=0":            `retain-days is "0"`,
		"s3://b?mode=governance":          `mode is "governance"`,
		"s3://b?retain-days=1&mode=legal": `mode is "legal"`,
		"s3://b?days=3":                   `"days" is not a parameter`,
	} {
		if _, err := anchor.Parse(address, anchor.Options{S3: s3}); err == nil || !strings.Contains(err.Error(), want) ||
			strings.Contains(err.Error(), "hush") {
			t.Errorf("%s: %v", address, err)
		}
	}
	if _, err := anchor.Parse("s3://b", anchor.Options{}); err == nil || !strings.Contains(err.Error(), "AWS_ACCESS_KEY_ID") {
		t.Errorf("%v", err)
	}
	if _, err := anchor.Parse("http://audit.example", anchor.Options{Secret: "hush"}); err == nil || !strings.Contains(err.Error(),
		"unencrypted") || strings.Contains(err.Error(), "hush") {
		t.Errorf("a token without TLS: %v", err)
	}
	parseOne(t, "http://localhost:1/", anchor.Options{Secret: "hush"})
	if _, err := anchor.Parse("https://a", anchor.Options{Secret: "whsec_hush"}); err == nil || strings.Contains(err.Error(), "hush") {
		t.Errorf("%v", err)
	}
}

func TestFilesHaveALineForEachHead(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "heads.jsonl")
	to := parseOne(t, path, anchor.Options{})
	for n := range 3 {
		if err := to.StoreHead(t.Context(), head(int64(n+1))); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	torn := filepath.Join(t.TempDir(), "torn.jsonl")
	if err := os.WriteFile(torn, []byte(`{"number":9`), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := parseOne(t, torn, anchor.Options{}).StoreHead(t.Context(), head(10)); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(torn)
	if err != nil || !bytes.HasPrefix(got, []byte("{\"number\":9\n{")) || !bytes.HasSuffix(got, []byte("}\n")) {
		t.Errorf("after a line without an end: %s, %v", got, err)
	}
	if heads, cut, err := chain.ParseHeads(bytes.NewReader(got)); err != nil || len(heads) != 1 || heads[0].Number != 10 ||
		!slices.Equal(cut, []int{1}) {
		t.Errorf("%v, %v, %v", heads, cut, err)
	}
	if heads, _, err := chain.ParseHeads(bytes.NewReader(text)); err != nil || len(heads) != 3 || heads[2].Number != 3 ||
		bytes.Count(text, []byte("\n")) != 3 {
		t.Errorf("%v, %v", heads, err)
	}
}

// TestWebhooksAreSigned verifies requests with the library of Standard Webhooks. A request that is
// repeated has the same id, and a redirect is not followed.
func TestWebhooksAreSigned(t *testing.T) {
	t.Parallel()
	secret := "whsec_" + base64.StdEncoding.EncodeToString(bytes.Repeat([]byte("k"), 32))
	verify, err := standardwebhooks.NewWebhook(secret)
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	status := http.StatusOK
	hook := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if err := verify.Verify(body, r.Header); err != nil {
			t.Error(err)
		}
		if heads, _, err := chain.ParseHeads(bytes.NewReader(body)); err != nil || len(heads) != 1 || heads[0].Number != 7 {
			t.Errorf("%s: %v", body, err)
		}
		ids = append(ids, r.Header.Get("webhook-id"))
		rw.Header().Set("Location", "/elsewhere")
		rw.WriteHeader(status)
	}))
	defer hook.Close()
	to, h := parseOne(t, hook.URL+"/heads?token=hush", anchor.Options{Secret: secret}), head(7)
	for range 2 {
		if err := to.StoreHead(t.Context(), h); err != nil {
			t.Fatal(err)
		}
	}
	for _, status = range []int{http.StatusTemporaryRedirect, http.StatusInternalServerError} {
		if err := to.StoreHead(t.Context(), h); err == nil || !strings.Contains(err.Error(), http.StatusText(status)) {
			t.Errorf("%d: %v", status, err)
		}
	}
	if len(ids) != 4 || ids[0] == "" || ids[0] != ids[1] {
		t.Errorf("%v", ids)
	}
	hook.Close()
	if err := to.StoreHead(t.Context(), h); err == nil || strings.Contains(err.Error(), "hush") {
		t.Errorf("%v", err)
	}
}

func TestWebhooksReceiveABearerToken(t *testing.T) {
	t.Parallel()
	hook := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer hush" || r.Header.Get("webhook-signature") != "" {
			t.Errorf("%v", r.Header)
		}
	}))
	defer hook.Close()
	if err := parseOne(t, hook.URL, anchor.Options{Secret: "hush"}).StoreHead(t.Context(), head(1)); err != nil {
		t.Error(err)
	}
}

// TestPlacesAreCheckedWithoutAHead checks places that take heads and places that do not. No place has
// another content afterwards.
func TestPlacesAreCheckedWithoutAHead(t *testing.T) {
	t.Parallel()
	status := http.StatusMethodNotAllowed
	hook := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodHead || r.Header.Get("Authorization") != "" {
			t.Errorf("%s, %v", r.Method, r.Header)
		}
		rw.WriteHeader(status)
	}))
	defer hook.Close()
	s := newS3(t)
	opt := anchor.Options{Secret: "hush", S3: anchor.S3{Endpoint: s.URL, Region: s.region, Key: s.key, Secret: s.secret}}
	wrong := opt
	wrong.S3.Secret = "wrong"
	dir := t.TempDir()
	existing, absent := filepath.Join(dir, "heads.jsonl"), filepath.Join(dir, "later.jsonl")
	if err := parseOne(t, existing, opt).StoreHead(t.Context(), head(1)); err != nil {
		t.Fatal(err)
	}
	before, _ := os.ReadFile(existing)
	check := func(address string, opt anchor.Options, want string) {
		t.Helper()
		got, err := parseOne(t, address, opt).Check(t.Context())
		if err != nil {
			got = err.Error()
		}
		if !strings.Contains(got, want) || strings.Contains(got, "hush") {
			t.Errorf("%s: %s, want %s", address, got, want)
		}
	}
	check(existing, opt, "can be written")
	check(absent, opt, "can be created")
	check(dir, opt, "is a directory")
	check(filepath.Join(dir, "none", "heads.jsonl"), opt, "the directory "+filepath.Join(dir, "none")+" does not exist")
	check(hook.URL+"/hush", opt, "it answers HEAD with 405")
	status = http.StatusBadGateway
	check(hook.URL+"/hush", opt, "the webhook answered 502 Bad Gateway")
	check("s3://audit/parley", opt, "the key is accepted")
	check("s3://audit/parley", wrong, "403 Forbidden SignatureDoesNotMatch")
	hook.Close()
	check(hook.URL+"/hush", opt, "refused")
	entries, err := os.ReadDir(dir)
	after, _ := os.ReadFile(existing)
	if err != nil || len(entries) != 1 || !bytes.Equal(before, after) || len(s.objects) != 0 {
		t.Errorf("%v, %v, %s, %v", err, entries, after, s.objects)
	}
}

// TestSilentServersAreGivenUp ends with the context, although the server never answers.
func TestSilentServersAreGivenUp(t *testing.T) {
	t.Parallel()
	asked, leave := make(chan struct{}, 2), make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		asked <- struct{}{}
		<-leave
	}))
	defer server.Close()
	defer close(leave)
	opt := anchor.Options{S3: anchor.S3{Endpoint: server.URL, Region: "r", Key: "id", Secret: "hush"}}
	for _, address := range []string{server.URL, "s3://bucket"} {
		ctx, cancel := context.WithCancel(t.Context())
		failed := make(chan error, 1)
		go func() { failed <- parseOne(t, address, opt).StoreHead(ctx, head(1)) }()
		wait.Receive(t, "the request", asked)
		cancel()
		if err := wait.Receive(t, "the end of the attempt", failed); err == nil || strings.Contains(err.Error(), server.URL) {
			t.Errorf("%s: %v", address, err)
		}
	}
}

// TestSignaturesAreThoseOfAWS signs the example of Amazon's documentation of Signature Version 4.
func TestSignaturesAreThoseOfAWS(t *testing.T) {
	t.Parallel()
	const body = "Welcome to Amazon S3."
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPut, "https://examplebucket.s3.amazonaws.com/test%24file.text",
		strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Date", "Fri, 24 May 2013 00:00:00 GMT")
	r.Header.Set("X-Amz-Storage-Class", "REDUCED_REDUNDANCY")
	anchor.SignRequest(anchor.S3{Region: "us-east-1", Key: "AKIAIOSFODNN7EXAMPLE", Secret: "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"}, r,
		[]byte(body),
		time.Date(2013, 5, 24, 0, 0, 0, 0, time.UTC))
	if got := r.Header.Get("Authorization"); !strings.HasSuffix(got,
		"Signature=98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd") {
		t.Error(got)
	}
}

// TestBucketsKeepHeads stores heads in a bucket that verifies signatures and refuses to replace
// objects. Heads of two replicas, of a log that was rewritten and of another day are kept.
func TestBucketsKeepHeads(t *testing.T) {
	t.Parallel()
	s := newS3(t)
	opt := anchor.Options{S3: anchor.S3{Endpoint: s.URL, Region: s.region, Key: s.key, Secret: s.secret, Token: "session+token="}}
	to := parseOne(t, "s3://audit/par%20ley/heads+1?retain-days=400&mode=governance", opt)
	first, rewritten, later := head(7), head(7), head(8)
	later.At = later.At.AddDate(0, 0, 1)
	for _, h := range []chain.Head{first, first, rewritten, later} {
		if err := to.StoreHead(t.Context(), h); err != nil {
			t.Fatal(err)
		}
	}
	if len(s.objects) != 3 || s.refused != 1 {
		t.Errorf("%d objects, %d writes were refused", len(s.objects), s.refused)
	}
	days := make(map[string]int)
	for key, o := range s.objects {
		var h chain.Head
		if err := json.Unmarshal(o.body, &h); err != nil || !strings.HasPrefix(key, "audit/par ley/heads+1/2026-11-2") {
			t.Errorf("%s: %s", key, o.body)
		}
		days[key[len("audit/par ley/heads+1/"):][:10]]++
		until, err := time.Parse(time.RFC3339, o.header.Get("X-Amz-Object-Lock-Retain-Until-Date"))
		if left := time.Until(until); err != nil || o.header.Get("X-Amz-Object-Lock-Mode") != "GOVERNANCE" || left < 399*24*time.Hour ||
			left > 401*24*time.Hour {
			t.Errorf("%v, %v", o.header, err)
		}
	}
	if days["2026-11-26"] != 2 || days["2026-11-27"] != 1 {
		t.Errorf("%v", days)
	}
	opt.S3.Token = ""
	if err := parseOne(t, "s3://audit", opt).StoreHead(t.Context(), first); err != nil { // no prefix, no lock
		t.Error(err)
	}
	opt.S3.Secret = "wrong"
	if err := parseOne(t, "s3://audit", opt).StoreHead(t.Context(), later); err == nil ||
		err.Error() != "the bucket answered 403 Forbidden SignatureDoesNotMatch" {
		t.Errorf("with another secret: %v", err)
	}
}
