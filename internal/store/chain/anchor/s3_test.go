package anchor_test

import (
	"crypto/hmac"
	"crypto/md5"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"sort"
	"strings"
	"testing"
)

// s3 is a scripted server with the API of S3. It computes each signature from the request that it
// has received, and keeps objects as object lock does.
type s3 struct {
	*httptest.Server
	region, key, secret string
	objects             map[string]object // by bucket and key
	refused             int
}

type object struct {
	body   []byte
	header http.Header
}

func newS3(t *testing.T) *s3 {
	s := &s3{region: "eu-central-1", key: "AKIDEXAMPLE", secret: "wJalr/XUtnFEMI", objects: make(map[string]object)}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		status, code := s.put(r, body)
		w.WriteHeader(status)
		if code != "" {
			fmt.Fprintf(w, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Error><Code>%s</Code><Message>no</Message></Error>", code)
		}
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *s3) put(r *http.Request, body []byte) (status int, code string) {
	sum := md5.Sum(body)
	name, err := url.PathUnescape(strings.TrimPrefix(strings.SplitN(r.RequestURI, "?", 2)[0], "/"))
	switch {
	case err != nil:
		return http.StatusBadRequest, "InvalidRequest"
	case !s.isSigned(r, body):
		return http.StatusForbidden, "SignatureDoesNotMatch"
	case r.Method != http.MethodPut: // the key may only put
		return http.StatusForbidden, "AccessDenied"
	case r.Header.Get("Content-Md5") != base64.StdEncoding.EncodeToString(sum[:]):
		return http.StatusBadRequest, "BadDigest"
	case s.objects[name].body != nil:
		s.refused++
		if r.Header.Get("If-None-Match") == "*" {
			return http.StatusPreconditionFailed, "PreconditionFailed"
		}
		return http.StatusForbidden, "AccessDenied"
	}
	s.objects[name] = object{body, r.Header.Clone()}
	return http.StatusOK, ""
}

var authorization = regexp.MustCompile(
	`^AWS4-HMAC-SHA256 Credential=([^/]+)/(\d{8})/([^/]+)/s3/aws4_request, SignedHeaders=([a-z0-9;-]+), Signature=([0-9a-f]{64})$`)

// isSigned verifies the signature of a request.
func (s *s3) isSigned(r *http.Request, body []byte) bool {
	m := authorization.FindStringSubmatch(r.Header.Get("Authorization"))
	if m == nil || m[1] != s.key || m[3] != s.region {
		return false
	}
	day, names, digest := m[2], strings.Split(m[4], ";"), sha256Hex(body)
	if !sort.StringsAreSorted(names) || r.Header.Get("X-Amz-Content-Sha256") != digest ||
		!strings.HasPrefix(r.Header.Get("X-Amz-Date"), day+"T") {
		return false
	}
	signed := make(map[string]bool)
	lines := []string{r.Method, strings.SplitN(r.RequestURI, "?", 2)[0], ""}
	for _, name := range names {
		signed[name] = true
		value := r.Header.Get(name)
		if name == "host" {
			value = r.Host
		}
		lines = append(lines, name+":"+value)
	}
	for name := range r.Header { // what decides about the object must be signed
		if lower := strings.ToLower(name); strings.HasPrefix(lower, "x-amz-") && !signed[lower] {
			return false
		}
	}
	lines = append(lines, "", m[4], digest)
	text := strings.Join([]string{"AWS4-HMAC-SHA256", r.Header.Get("X-Amz-Date"), day + "/" + s.region + "/s3/aws4_request",
		sha256Hex([]byte(strings.Join(lines, "\n")))}, "\n")
	key := hash([]byte("AWS4"+s.secret), day)
	key = hash(hash(hash(key, s.region), "s3"), "aws4_request")
	return signed["host"] && hex.EncodeToString(hash(key, text)) == m[5]
}

func sha256Hex(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

func hash(key []byte, text string) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(text))
	return h.Sum(nil)
}
