package account

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-server/parley/db"
	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/replan"
)

// Kinds of links.
const (
	linkSetup    = "setup"
	linkPassword = "password"
	linkLogin    = "login"
)

// How long links work.
const (
	SetupLife    = 30 * time.Minute
	PasswordLife = 7 * 24 * time.Hour
)

// ErrAdminExists is returned by NewSetupToken if there is an administrator.
var ErrAdminExists = errors.New("there is an administrator already")

func (s *Store) newLink(ctx context.Context, kind string, user *string, life time.Duration) (string, error) {
	text := newSecret()
	err := s.q.LoginLinkInsert(ctx, hashToken(text), kind, user, life.Seconds())
	return text, wrapError("store a link", err)
}

// NewSetupToken returns a token with which the first administrator is created.
func (s *Store) NewSetupToken(ctx context.Context) (string, error) {
	exists, err := s.HasAdmin(ctx)
	if err != nil {
		return "", err
	}
	if exists {
		return "", ErrAdminExists
	}
	return s.newLink(ctx, linkSetup, nil, SetupLife)
}

// NewPasswordToken returns a token with which a user sets a password, once.
func (s *Store) NewPasswordToken(ctx context.Context, user string) (string, error) {
	return s.newLink(ctx, linkPassword, &user, PasswordLife)
}

// NewLoginToken returns a token that signs one browser in.
func (s *Store) NewLoginToken(ctx context.Context, user string) (string, error) {
	return s.newLink(ctx, linkLogin, &user, SetupLife)
}

// badLink is the error of a token that is unknown, used up or too old.
func badLink(why string) error {
	return fault.Invalid(fault.Violation{Param: "/token", Rule: "expired", Message: why})
}

const badSetup = "This setup token is not valid any more. Restart the server: it prints a new one."

// SetupExpiry returns when a setup token expires.
func (s *Store) SetupExpiry(ctx context.Context, text string) (time.Time, error) {
	row, err := s.q.LoginLinkGet(ctx, hashToken(strings.TrimSpace(text)), linkSetup)
	if isMissing(err) {
		return time.Time{}, badLink(badSetup)
	}
	return row.ExpiresAt, wrapError("find a link", err)
}

// Setup creates the first administrator and ends all setup tokens.
func (s *Store) Setup(ctx context.Context, text string, n NewUser) (User, error) {
	n.Admin = true
	return s.firstAdmin(ctx, n, func(q *db.Queries) error {
		_, err := q.LoginLinkTake(ctx, hashToken(strings.TrimSpace(text)), linkSetup)
		if isMissing(err) {
			return badLink(badSetup)
		}
		return err
	})
}

// EnsureAdmin creates the first administrator unless there is one, for configurations that name it.
func (s *Store) EnsureAdmin(ctx context.Context, n NewUser) (created bool, err error) {
	n.Admin = true
	_, err = s.firstAdmin(ctx, n, func(*db.Queries) error { return nil })
	if errors.Is(err, ErrAdminExists) {
		return false, nil
	}
	return err == nil, err
}

func (s *Store) firstAdmin(ctx context.Context, n NewUser, allow func(*db.Queries) error) (User, error) {
	if n.Password == "" {
		return User{}, CheckPassword("", n.Email)
	}
	arg, err := s.prepareUser(ctx, n)
	if err != nil {
		return User{}, err
	}
	var u User
	err = replan.InTx(ctx, s.pool, func(tx pgx.Tx) error {
		q := s.q.WithTx(tx)
		if err := q.UsersLock(ctx); err != nil {
			return err
		}
		exists, err := q.UserAdminExists(ctx)
		if err != nil {
			return err
		}
		if exists {
			return ErrAdminExists
		}
		if err := allow(q); err != nil {
			return err
		}
		if u, err = insertUser(ctx, q, arg); err != nil {
			return err
		}
		return q.LoginLinksSetup(ctx)
	})
	return u, err
}

// Invited returns the user of a password link without using it up.
func (s *Store) Invited(ctx context.Context, text string) (User, error) {
	row, err := s.q.LoginLinkGet(ctx, hashToken(text), linkPassword)
	if isMissing(err) {
		return User{}, badLink("This link is not valid any more. Ask an owner of the workspace for a new one.")
	}
	if err != nil {
		return User{}, wrapError("find a link", err)
	}
	return s.User(ctx, *row.UserID)
}

// TakeInvitation sets the password of a link's user and uses the link up.
func (s *Store) TakeInvitation(ctx context.Context, text, password string) (User, error) {
	u, err := s.Invited(ctx, text)
	if err != nil {
		return User{}, err
	}
	if err := CheckPassword(password, u.Email); err != nil {
		return User{}, err
	}
	if _, err := s.q.LoginLinkTake(ctx, hashToken(text), linkPassword); err != nil {
		return User{}, wrapError("use a link", err)
	}
	return u, s.SetPassword(ctx, u.ID, password, "")
}

// TakeLogin uses a sign-in link up.
func (s *Store) TakeLogin(ctx context.Context, text string) (User, error) {
	row, err := s.q.LoginLinkTake(ctx, hashToken(text), linkLogin)
	if isMissing(err) {
		return User{}, badLink("This link has been used or is too old. Sign in, or restart the server for a new one.")
	}
	if err != nil {
		return User{}, wrapError("use a link", err)
	}
	return s.User(ctx, *row.UserID)
}
