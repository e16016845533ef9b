package apikey

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/parley-server/parley/db"
	"github.com/parley-server/parley/internal/fault"
)

// A browser token is a key for the page of one end user. It has at most the scopes chat and
// sessions:read, works for one session or for the sessions of one user, lives at most an hour, and
// ends with the key or the membership of its maker.

const (
	// DefaultTokenLife and MaxTokenLife are the lifetimes of browser tokens.
	DefaultTokenLife = 15 * time.Minute
	MaxTokenLife     = time.Hour
)

// tokenScopes are the scopes of browser tokens, as far as their maker has them.
var tokenScopes = Scopes{Chat, SessionsRead}

// Limit restricts a browser token to one session or to the sessions of one user.
type Limit struct {
	Session uuid.UUID `json:"session_id,omitzero"`
	User    string    `json:"user,omitempty"`
	Agent   string    `json:"agent,omitempty"` // answers its messages; "": the default agent
}

// String identifies the limit in hashes of requests.
func (l Limit) String() string {
	text, _ := json.Marshal(l) // a struct of texts cannot fail
	return string(text)
}

// Token is the public data of a browser token after its creation.
type Token struct {
	ID         string     `json:"token_id"`
	Session    *uuid.UUID `json:"session_id"`
	User       *string    `json:"user"`
	Agent      *string    `json:"agent"`
	Scopes     Scopes     `json:"scopes"`
	CreatedBy  string     `json:"created_by"`
	CreatedAt  time.Time  `json:"created_at"`
	ExpiresAt  time.Time  `json:"expires_at"`
	LastUsedAt *time.Time `json:"last_used_at"`
	RevokedAt  *time.Time `json:"revoked_at"`
}

func tokenOf(row db.APIKey) Token {
	t := Token{ID: row.ID, Session: row.OnlySession, User: row.OnlyUser, Agent: row.OnlyAgent, Scopes: scopesOf(row.Scopes),
		CreatedAt:  row.CreatedAt.UTC(),
		LastUsedAt: row.LastUsedAt, RevokedAt: row.RevokedAt}
	if row.CreatedBy != nil {
		t.CreatedBy = *row.CreatedBy
	}
	if row.ExpiresAt != nil {
		t.ExpiresAt = row.ExpiresAt.UTC()
	}
	return t
}

// limitOf returns the limit of a browser token, nil for other keys.
func limitOf(row db.APIKey) *Limit {
	if !row.Browser {
		return nil
	}
	l := &Limit{}
	if row.OnlySession != nil {
		l.Session = *row.OnlySession
	}
	if row.OnlyUser != nil {
		l.User = *row.OnlyUser
	}
	if row.OnlyAgent != nil {
		l.Agent = *row.OnlyAgent
	}
	return l
}

// CreateToken creates a browser token for a caller with the scope chat. It returns the token's
// text, which is never shown again.
func (s *Store) CreateToken(ctx context.Context, by Principal, limit Limit, life time.Duration) (Token, string, error) {
	if by.Only != nil {
		return Token{}, "", fault.New(fault.TokenRestricted, "A browser token cannot create tokens. Use the key of your backend.")
	}
	var scopes Scopes
	for _, scope := range tokenScopes {
		if by.Scopes.Allows(scope) {
			scopes = append(scopes, scope)
		}
	}
	text, id, secret := generateSecret(browserPrefix)
	arg := db.APIKeyInsertBrowserParams{ID: id, WorkspaceID: by.Workspace, Name: "browser token", SecretHash: hashSecret(secret),
		Last4:  text[len(text)-4:],
		Scopes: scopes.Strings(), Maker: &by.Key, LifeSeconds: life.Seconds(), OnlyUser: nilIfEmpty(limit.User),
		OnlyAgent: nilIfEmpty(limit.Agent)}
	if limit.Session != uuid.Nil {
		arg.OnlySession = &limit.Session
	}
	if strings.HasPrefix(by.Key, MemberPrefix) {
		arg.MemberID = &by.Key
	}
	if err := s.q.BrowserTokensPurge(ctx); err != nil {
		s.log.WarnContext(ctx, "delete old browser tokens", "err", err)
	}
	row, err := s.q.APIKeyInsertBrowser(ctx, arg)
	if err != nil {
		return Token{}, "", fmt.Errorf("insert browser token: %w", err)
	}
	return tokenOf(row), text, nil
}

// TokenQuery selects browser tokens. Empty fields select all.
type TokenQuery struct {
	By      string // id of the maker
	Session *uuid.UUID
	User    *string
	Limit   int
	Cursor  string
}

// Tokens returns a page of the tokens that can be used now, newest first, and the cursor of the
// next page, "" for none.
func (s *Store) Tokens(ctx context.Context, workspace uuid.UUID, q TokenQuery) ([]Token, string, error) {
	arg := db.BrowserTokensListParams{WorkspaceID: workspace, Maker: nilIfEmpty(q.By), OnlySession: q.Session, OnlyUser: q.User,
		Page: int32(q.Limit) + 1}
	if q.Cursor != "" {
		micro, id, _ := strings.Cut(q.Cursor, ".")
		n, err := strconv.ParseInt(micro, 10, 64)
		if err != nil || len(id) != idLen || n < 0 || n > maxMicro {
			return nil, "", &fault.Error{Code: fault.InvalidCursor, Param: "cursor",
				Message: "This cursor does not belong to this list. Take next_cursor of the page before, or begin without a cursor."}
		}
		arg.Before, arg.BeforeID = new(time.UnixMicro(n)), &id
	}
	rows, err := s.q.BrowserTokensList(ctx, arg)
	if err != nil {
		return nil, "", fmt.Errorf("list browser tokens: %w", err)
	}
	next := ""
	if len(rows) > q.Limit {
		rows = rows[:q.Limit]
		last := rows[q.Limit-1]
		next = strconv.FormatInt(last.CreatedAt.UnixMicro(), 10) + "." + last.ID
	}
	list := make([]Token, len(rows))
	for i, row := range rows {
		list[i] = tokenOf(row)
	}
	return list, next, nil
}

// maxMicro is the end of the year 9999: PostgreSQL rejects much later times.
const maxMicro = 253402300799_999999

// RevokeToken ends a browser token now, as Revoke does a key. by is its maker, "" for an
// administrator, who may end every token. A token that cannot be used is ErrNotFound.
func (s *Store) RevokeToken(ctx context.Context, workspace uuid.UUID, id, by string) (Token, error) {
	row, err := s.q.BrowserTokenRevoke(ctx, workspace, id, nilIfEmpty(by))
	s.cache.forget(id)
	if errors.Is(err, pgx.ErrNoRows) {
		return Token{}, ErrNotFound
	}
	if err != nil {
		return Token{}, fmt.Errorf("revoke browser token: %w", err)
	}
	return tokenOf(row), nil
}

func nilIfEmpty(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}
