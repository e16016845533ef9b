package apikey

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-server/parley/db"
	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/lapse"
	"github.com/parley-server/parley/internal/replan"
)

var (
	// ErrNotFound is returned if the workspace does not have the key, or the key is revoked.
	ErrNotFound = errors.New("no such key")
	// ErrReplaced is returned if the key has already been rotated.
	ErrReplaced = errors.New("the key is replaced already")
	// ErrOnlyOne is returned if the workspace already has a webhook_token.
	ErrOnlyOne = errors.New("a workspace has one webhook_token")
	// ErrPersonal is returned if another user would get a token that acts as its member.
	ErrPersonal = errors.New("the key is the personal token of a member")
)

// Key is the public data of a key after its creation.
type Key struct {
	ID         string     `json:"key_id"`
	Workspace  uuid.UUID  `json:"-"`
	Name       string     `json:"name"`
	Last4      string     `json:"last4"`
	Scopes     Scopes     `json:"scopes"`
	Loopback   bool       `json:"loopback"`
	Webhook    bool       `json:"webhook_token"`
	CreatedBy  *string    `json:"created_by"`
	CreatedAt  time.Time  `json:"created_at"`
	ExpiresAt  *time.Time `json:"expires_at"`
	LastUsedAt *time.Time `json:"last_used_at"`
	RevokedAt  *time.Time `json:"revoked_at"`
	ReplacedBy *string    `json:"replaced_by"`
	Member     string     `json:"-"`               // user whose personal token it is
	Owner      string     `json:"owner,omitempty"` // their e-mail address, in lists
}

// Store reads and writes keys.
type Store struct {
	pool  *pgxpool.Pool
	q     *db.Queries
	log   *slog.Logger
	cache cache
	watch lapse.Watch
}

// New returns a store. A nil logger discards.
func New(pool *pgxpool.Pool, log *slog.Logger) *Store {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Store{pool: pool, q: db.New(replan.Pool{Pool: pool}), log: log}
}

// Grant describes a key to be created.
type Grant struct {
	Workspace uuid.UUID
	Name      string
	Scopes    Scopes
	Loopback  bool           // accepted from this machine only
	Life      *time.Duration // from now, on PostgreSQL's clock; nil: for ever
	By        *Principal     // creator of the key; nil for the command line, which may grant anything
	Member    string         // user whose personal token it is; "": a key of the workspace

	webhook bool
}

// Create creates a key. It returns the key's text, which is never shown again.
func (s *Store) Create(ctx context.Context, g Grant) (Key, string, error) {
	if err := g.Check(); err != nil {
		return Key{}, "", err
	}
	return s.insertKey(ctx, s.q, g)
}

// Check rejects scopes that the granting key lacks.
func (g Grant) Check() error {
	var wrong []fault.Violation
	if !isName(g.Name) {
		wrong = append(wrong, nameViolation)
	}
	if len(g.Scopes) == 0 {
		wrong = append(wrong, fault.Violation{Param: "/scopes", Rule: "required", Message: "A key needs at least one scope."})
	}
	for i, scope := range g.Scopes {
		if !scope.Known() {
			wrong = append(wrong, fault.Violation{Param: fmt.Sprintf("/scopes/%d", i), Rule: "enum", Expected: All,
				Message: fmt.Sprintf("Unknown scope %q. The scopes are %s.", scope, Scopes(All))})
		}
	}
	if len(wrong) > 0 {
		return fault.Invalid(wrong...)
	}
	if g.By == nil {
		return nil
	}
	for _, scope := range g.Scopes {
		if !g.By.Scopes.Allows(scope) {
			return &fault.Error{Code: fault.InsufficientScope, Message: fmt.Sprintf("Your key lacks the scope %s and so cannot grant it.", scope),
				Detail: fault.Detail{RequiredScope: string(scope)}}
		}
	}
	return nil
}

var nameViolation = fault.Violation{Param: "/name", Rule: "length", Message: "A key's name is text in UTF-8, of 1 to 100 bytes."}

func isName(s string) bool { return s != "" && len(s) <= 100 && utf8.ValidString(s) }

func (s *Store) insertKey(ctx context.Context, q *db.Queries, g Grant) (Key, string, error) {
	text, id, secret := generateSecret(kindPrefix(g.webhook, false))
	arg := db.APIKeyInsertParams{
		ID: id, WorkspaceID: g.Workspace, Name: g.Name, SecretHash: hashSecret(secret), Last4: text[len(text)-4:],
		Scopes: slices.Compact(slices.Sorted(slices.Values(g.Scopes.Strings()))), Loopback: g.Loopback, Webhook: g.webhook,
	}
	if g.Life != nil {
		arg.LifeSeconds = new(g.Life.Seconds())
	}
	if g.By != nil {
		arg.CreatedBy = &g.By.Key
	}
	if g.Member != "" {
		arg.MemberID = &g.Member
	}
	row, err := q.APIKeyInsert(ctx, arg)
	if err != nil {
		return Key{}, "", fmt.Errorf("insert key: %w", err)
	}
	return keyOf(row), text, nil
}

// List returns a workspace's keys, oldest first, dead ones included.
func (s *Store) List(ctx context.Context, workspace uuid.UUID) ([]Key, error) {
	rows, err := s.q.APIKeysList(ctx, workspace)
	if err != nil {
		return nil, fmt.Errorf("list keys: %w", err)
	}
	keys := make([]Key, len(rows))
	for i, row := range rows {
		keys[i] = keyOf(row.APIKey)
		keys[i].Owner = row.Owner
	}
	return keys, nil
}

// Rotate creates a key that replaces another, with the same rights and lifetime. The old one keeps
// working for the overlap. A webhook_token cannot be rotated: it is the only one of its workspace.
// Neither can a personal token: its replacement would let an administrator act as its member.
func (s *Store) Rotate(ctx context.Context, workspace uuid.UUID, id string, overlap time.Duration) (Key, string, error) {
	var key Key
	var text string
	err := replan.InTx(ctx, s.pool, func(tx pgx.Tx) error {
		q := s.q.WithTx(tx)
		found, err := q.APIKeyByID(ctx, id)
		old := found.APIKey
		switch {
		case errors.Is(err, pgx.ErrNoRows) || err == nil && (old.WorkspaceID != workspace || old.Browser):
			return ErrNotFound
		case err != nil:
			return fmt.Errorf("find key: %w", err)
		case old.Webhook:
			return ErrOnlyOne
		case old.MemberID != nil:
			return ErrPersonal
		}
		g := Grant{Workspace: workspace, Name: old.Name, Scopes: scopesOf(old.Scopes), Loopback: old.Loopback}
		if old.ExpiresAt != nil {
			g.Life = new(old.ExpiresAt.Sub(old.CreatedAt))
		}
		if key, text, err = s.insertKey(ctx, q, g); err != nil {
			return err
		}
		n, err := q.APIKeyReplace(ctx, workspace, id, &key.ID, overlap.Seconds())
		if err != nil {
			return fmt.Errorf("replace key: %w", err)
		}
		if n == 0 {
			return ErrReplaced
		}
		return nil
	})
	if err != nil {
		return Key{}, "", err
	}
	s.cache.forget(id)
	return key, text, nil
}

// Revoke ends a key now. Its open streams close within a second.
func (s *Store) Revoke(ctx context.Context, workspace uuid.UUID, id string) error {
	n, err := s.q.APIKeyRevoke(ctx, workspace, id)
	if err != nil {
		return fmt.Errorf("revoke key: %w", err)
	}
	s.cache.forget(id)
	if n == 0 {
		return ErrNotFound
	}
	return nil
}

func keyOf(row db.APIKey) Key {
	member := ""
	if row.MemberID != nil {
		member = *row.MemberID
	}
	return Key{Member: member,
		ID: row.ID, Workspace: row.WorkspaceID, Name: row.Name, Last4: row.Last4, Scopes: scopesOf(row.Scopes), Loopback: row.Loopback,
		Webhook:   row.Webhook,
		CreatedBy: row.CreatedBy, CreatedAt: row.CreatedAt, ExpiresAt: row.ExpiresAt, LastUsedAt: row.LastUsedAt,
		RevokedAt: row.RevokedAt, ReplacedBy: row.ReplacedBy,
	}
}
