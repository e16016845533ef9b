package filestore

import (
	"context"
	"net/http"
	"time"

	"github.com/google/uuid"
)

// Sniff and Verdict expose how types are distinguished.
var (
	Sniff   = sniffType
	Verdict = judgeContent
)

// Sign makes an address with an expiry chosen by the test.
func (s *Store) Sign(method string, workspace, file uuid.UUID, expires time.Time) string {
	return s.signLink(link{method, workspace, file, expires})
}

// Verify reports whether Sign made an address.
func (s *Store) Verify(method, path, query string) bool {
	_, ok := s.verifyLink(method, path, query)
	return ok
}

// GetMethod is the method of download addresses.
const GetMethod = http.MethodGet

// FetchNext fetches the next file, if any.
func (s *Store) FetchNext(ctx context.Context) (bool, error) {
	row, release, found, err := s.claimFetch(ctx)
	if err != nil || !found {
		return false, err
	}
	defer release()
	return true, s.fetchOne(ctx, row)
}
