package filestore

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/parley-server/parley/db"
	"github.com/parley-server/parley/internal/fault"
)

// A signed address is a capability: its holder may do one thing with one file until it expires. Its
// form is
//
//	/api/v1/workspaces/<uuid>/files/<uuid>/content?expires=<unix>&key=<id>&signature=<43 characters>
//
// It has exactly one spelling: any other is forged.
const (
	linkPurpose = "signed file addresses"
	disposition = "attachment" // files are only downloaded, never displayed
	// skew is how long an address still works after its expiry.
	skew = time.Minute
)

var base64url = base64.RawURLEncoding.Strict()

// link is the content of a signed address.
type link struct {
	method          string
	workspace, file uuid.UUID
	expires         time.Time // whole seconds
}

// downloadLink returns the address of a file, and its expiry.
func (s *Store) downloadLink(workspace, file uuid.UUID, now time.Time) (address string, expires time.Time) {
	l := link{http.MethodGet, workspace, file, now.Add(s.opt.TTL).Truncate(time.Second)}
	return s.signLink(l), l.expires
}

// signLink returns a signed address.
func (s *Store) signLink(l link) string {
	id, key := s.keys.Derive(linkPurpose)
	return strings.TrimSuffix(s.opt.Base, "/") + l.urlPath() + "?" + l.urlQuery(id, l.signatureOf(id, key))
}

func (l link) urlPath() string {
	return "/api/v1/workspaces/" + l.workspace.String() + "/files/" + l.file.String() + "/content"
}

func (l link) urlQuery(key, signature string) string {
	return "expires=" + strconv.FormatInt(l.expires.Unix(), 10) + "&key=" + key + "&signature=" + signature
}

func (l link) signatureOf(id string, key []byte) string {
	mac := hmac.New(sha256.New, key)
	for _, part := range []string{l.method, l.urlPath(), disposition, strconv.FormatInt(l.expires.Unix(), 10), id} {
		mac.Write([]byte(part + "\n")) // no part has a line end
	}
	return base64url.EncodeToString(mac.Sum(nil))
}

// verifyLink parses the address of a request: its method, its path as it was sent, its query. ok is
// false for every address that signLink did not make.
func (s *Store) verifyLink(method, path, query string) (l link, ok bool) {
	l.method = method
	rest, prefixed := strings.CutPrefix(path, "/api/v1/workspaces/")
	workspace, rest, between := strings.Cut(rest, "/files/")
	file, suffixed := strings.CutSuffix(rest, "/content")
	expires, rest, keyed := strings.Cut(strings.TrimPrefix(query, "expires="), "&key=")
	id, signature, signed := strings.Cut(rest, "&signature=")
	if !prefixed || !between || !suffixed || !keyed || !signed {
		return l, false
	}
	var errs [3]error
	var unix int64
	l.workspace, errs[0] = uuid.Parse(workspace)
	l.file, errs[1] = uuid.Parse(file)
	unix, errs[2] = strconv.ParseInt(expires, 10, 64)
	l.expires = time.Unix(unix, 0)
	if errs != [3]error{} || path != l.urlPath() || query != l.urlQuery(id, signature) {
		return l, false
	}
	key, ok := s.keys.DeriveFrom(id, linkPurpose)
	return l, ok && hmac.Equal([]byte(signature), []byte(l.signatureOf(id, key)))
}

// checkExpiry rejects an expired address, and one with an expiry later than that of any signed
// address.
func (l link) checkExpiry(now time.Time) error {
	switch {
	case now.After(l.expires.Add(skew)):
		return fault.New(fault.FileExpired, "This address has expired. Ask for a new one.")
	case l.expires.After(now.Add(MaxTTL + skew)):
		return notFound()
	}
	return nil
}

// linkedFile returns the file of a signed address that has not expired.
func (s *Store) linkedFile(ctx context.Context, l link) (db.File, error) {
	ctx, cancel := shortContext(ctx)
	defer cancel()
	row, err := s.fileRow(ctx, l.workspace, l.file)
	if err != nil {
		return row, err
	}
	now, err := s.databaseTime(ctx, s.q)
	if err != nil {
		return row, err
	}
	return row, l.checkExpiry(now)
}
