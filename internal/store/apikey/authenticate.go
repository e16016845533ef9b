package apikey

import (
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/parley-server/parley/db"
	"github.com/parley-server/parley/internal/fault"
)

// Principal identifies the sender of a request.
type Principal struct {
	Workspace uuid.UUID
	Key       string // id of the key, of the webhook_token or, with MemberPrefix, of a signed-in user
	Name      string // of the key or the user
	Scopes    Scopes

	// Token is the id of a browser token, which acts for the Key that made it; Only is its limit.
	Token string
	Only  *Limit
}

// Credential returns the id of what the request was authenticated with: its limits are counted by
// it, and its streams end with it.
func (p Principal) Credential() string { return cmp.Or(p.Token, p.Key) }

// remembered is how long a verified key is trusted without another query. With streams checked
// every half second, a revoked key is dead within a second.
const remembered = 750 * time.Millisecond

// Authenticate returns the principal of a bearer token. Unknown, malformed, expired and revoked
// keys return the same error. remote is the address of the client: a key for this machine only is
// rejected from any other address.
func (s *Store) Authenticate(ctx context.Context, bearer string, remote netip.Addr) (Principal, error) {
	if bearer == "" {
		return Principal{}, fault.New(fault.MissingAPIKey, "Send your API key in the header Authorization: Bearer <API_KEY>.")
	}
	id, secret, ok := Parse(bearer)
	if !ok {
		return Principal{}, Invalid()
	}
	sum := sha256.Sum256([]byte(bearer))
	e, ok := s.cache.get(id, sum)
	if !ok {
		found, err := s.q.APIKeyByID(ctx, id)
		if err != nil && !errors.Is(err, pgx.ErrNoRows) {
			return Principal{}, fmt.Errorf("find key: %w", err)
		}
		row := found.APIKey
		// An unknown key costs the same comparison as a wrong secret.
		if subtle.ConstantTimeCompare(hashSecret(secret), row.SecretHash) != 1 || kindPrefix(row.Webhook, row.Browser) != prefixOf(bearer) {
			s.cache.forgetIf(id, sum) // it was valid earlier
			return Principal{}, Invalid()
		}
		scopes := scopesOf(row.Scopes)
		if row.MemberID != nil {
			scopes = scopes.within(Role(found.Role))
		}
		e = entry{sum: sum, at: time.Now(), loopback: row.Loopback, principal: principalOf(row, scopes)}
		s.cache.put(id, e)
		if found.Unnoted {
			if err := s.q.APIKeyUsed(ctx, id); err != nil {
				s.log.WarnContext(ctx, "note the use of a key", "key", id, "err", err)
			}
		}
	}
	if e.loopback && !remote.Unmap().IsLoopback() {
		return Principal{}, Invalid()
	}
	return e.principal, nil
}

func principalOf(row db.APIKey, scopes Scopes) Principal {
	p := Principal{Workspace: row.WorkspaceID, Key: row.ID, Name: row.Name, Scopes: scopes}
	if p.Only = limitOf(row); p.Only != nil && row.CreatedBy != nil {
		p.Token, p.Key = row.ID, *row.CreatedBy
	}
	return p
}

// Seen reports whether a key was valid when it was last verified, however long ago. It does not
// query the database.
func (s *Store) Seen(bearer string) bool {
	id, _, ok := Parse(bearer)
	return ok && s.cache.has(id, sha256.Sum256([]byte(bearer)))
}

// Invalid returns the error for every key that is not valid now.
func Invalid() *fault.Error {
	return fault.New(fault.InvalidAPIKey, "This API key is not valid. It may be mistyped, expired or revoked. "+
		"Check it, or ask an administrator for a new key.")
}

// cache remembers recently verified keys.
type cache struct {
	mu sync.Mutex
	m  map[string]entry
}

type entry struct {
	sum       [sha256.Size]byte // hash of the whole key: another secret does not match
	at        time.Time
	loopback  bool
	principal Principal
}

const cacheSize = 4096

func (c *cache) get(id string, sum [sha256.Size]byte) (entry, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.m[id]
	return e, ok && time.Since(e.at) < remembered && subtle.ConstantTimeCompare(e.sum[:], sum[:]) == 1
}

// has reports whether a key was verified at any time.
func (c *cache) has(id string, sum [sha256.Size]byte) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.m[id]
	return ok && subtle.ConstantTimeCompare(e.sum[:], sum[:]) == 1
}

// forgetIf forgets a key unless another secret was verified for its id.
func (c *cache) forgetIf(id string, sum [sha256.Size]byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e, ok := c.m[id]; ok && subtle.ConstantTimeCompare(e.sum[:], sum[:]) == 1 {
		delete(c.m, id)
	}
}

func (c *cache) put(id string, e entry) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.m == nil || len(c.m) >= cacheSize {
		c.m = make(map[string]entry)
	}
	c.m[id] = e
}

func (c *cache) forget(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.m, id)
}
