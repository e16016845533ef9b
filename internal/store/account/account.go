// Package account owns the users of the web application: their passwords, their roles in
// workspaces, the browsers that they are signed in with, and the links that work once.
//
// It promises: passwords and the secrets of cookies and links are stored as hashes only; a wrong
// password takes as long as an unknown user; a browser that is signed out loses its streams within
// a second on every replica; a workspace that had an owner keeps one, unless the groups of an
// identity provider take the role away, and the server keeps an administrator.
package account

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-server/parley/db"
	"github.com/parley-server/parley/internal/lapse"
	"github.com/parley-server/parley/internal/replan"
	"github.com/parley-server/parley/internal/store/apikey"
)

// User is a user of the web application.
type User struct {
	ID          string // begins with mbr_
	Email       string
	Name        string
	Admin       bool // of the server, and owner of every workspace
	Disabled    bool
	HasPassword bool
	OIDC        bool // has signed in at the identity provider
	CreatedAt   time.Time
	LastLogin   *time.Time
}

// DisplayName returns the name, or the email of a user without one.
func (u User) DisplayName() string {
	if u.Name != "" {
		return u.Name
	}
	return u.Email
}

func userOf(row db.User) User {
	return User{ID: row.ID, Email: row.Email, Name: row.Name, Admin: row.IsAdmin, Disabled: row.DisabledAt != nil,
		HasPassword: row.PasswordHash != nil, OIDC: row.OidcSubject != nil, CreatedAt: row.CreatedAt, LastLogin: row.LastLoginAt}
}

// Membership is the role of a user in a workspace.
type Membership struct {
	Workspace uuid.UUID
	Slug      string
	Name      string
	Role      apikey.Role
}

// Store reads and writes accounts.
type Store struct {
	pool     *pgxpool.Pool
	q        *db.Queries
	log      *slog.Logger
	watch    lapse.Watch
	hashing  chan struct{} // places for password hashes, which need much memory
	hasAdmin atomic.Bool
}

// New returns a store. A nil logger discards.
func New(pool *pgxpool.Pool, log *slog.Logger) *Store {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Store{pool: pool, q: db.New(replan.Pool{Pool: pool}), log: log, hashing: make(chan struct{}, 4)}
}

// ErrDead is the cause when a context of While ended: the browser is signed out.
var ErrDead = errors.New("the web session has ended")

// While returns a context that ends with ErrDead soon after a web session does. The caller must
// call stop. Run must be running.
func (s *Store) While(ctx context.Context, session string) (context.Context, func()) {
	return s.watch.While(ctx, session)
}

// Run checks the web sessions with open contexts, and removes what has expired, until ctx ends.
func (s *Store) Run(ctx context.Context) error {
	var pruning sync.WaitGroup
	pruning.Go(func() { s.pruneExpired(ctx) })
	defer pruning.Wait()
	return s.watch.Run(ctx, s.log, "look for web sessions that have ended", ErrDead, s.q.WebSessionsDead)
}

// newSecret returns a random secret for a cookie or a link.
func newSecret() string {
	var b [32]byte
	_, _ = rand.Read(b[:])
	return base64.RawURLEncoding.EncodeToString(b[:])
}

func hashToken(text string) []byte {
	sum := sha256.Sum256([]byte(text))
	return sum[:]
}

// isToken compares a secret with its hash.
func isToken(text string, hash []byte) bool {
	return subtle.ConstantTimeCompare(hashToken(text), hash) == 1
}

// newID returns an id with a prefix.
func newID(prefix string) string { return prefix + strings.ToLower(rand.Text())[:20] }

// isMissing reports that a query found no row.
func isMissing(err error) bool { return errors.Is(err, pgx.ErrNoRows) }

func wrapError(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", what, err)
}
