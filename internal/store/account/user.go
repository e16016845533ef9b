package account

import (
	"context"
	"net/mail"
	"strings"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"

	"github.com/parley-server/parley/db"
	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/pgerr"
	"github.com/parley-server/parley/internal/replan"
)

// NewUser describes a user to be created.
type NewUser struct {
	Email    string
	Name     string
	Password string // "": none yet
	Admin    bool
	Subject  string // of the identity provider; "": none
}

// Create creates a user. An address in use is an INVALID_REQUEST.
func (s *Store) Create(ctx context.Context, n NewUser) (User, error) {
	arg, err := s.prepareUser(ctx, n)
	if err != nil {
		return User{}, err
	}
	return insertUser(ctx, s.q, arg)
}

// prepareUser checks a new user and hashes the password.
func (s *Store) prepareUser(ctx context.Context, n NewUser) (arg db.UserInsertParams, err error) {
	n.Email, n.Name = strings.TrimSpace(n.Email), strings.TrimSpace(n.Name)
	violations := append(emailViolations(n.Email), nameViolations(n.Name)...)
	if n.Password != "" {
		if f := fault.From(CheckPassword(n.Password, n.Email)); f != nil {
			violations = append(violations, f.Detail.Violations...)
		}
	}
	if len(violations) > 0 {
		return arg, fault.Invalid(violations...)
	}
	arg = db.UserInsertParams{ID: newID("mbr_"), Email: n.Email, Name: n.Name, IsAdmin: n.Admin}
	if n.Subject != "" {
		arg.OidcSubject = &n.Subject
	}
	if n.Password != "" {
		hash, err := s.hashPassword(ctx, n.Password)
		if err != nil {
			return arg, err
		}
		arg.PasswordHash = &hash
	}
	return arg, nil
}

func insertUser(ctx context.Context, q *db.Queries, arg db.UserInsertParams) (User, error) {
	row, err := q.UserInsert(ctx, arg)
	if isMissing(err) {
		return User{}, emailInUse(arg.Email)
	}
	if err != nil {
		return User{}, wrapError("insert user", err)
	}
	return userOf(row), nil
}

func emailInUse(email string) error {
	return fault.Invalid(fault.Violation{Param: "/email", Rule: "unique", Message: "There is a user " + email + " already."})
}

func emailViolations(email string) []fault.Violation {
	parsed, err := mail.ParseAddress(email)
	if err != nil || parsed.Address != email || len(email) > 254 || !utf8.ValidString(email) {
		return []fault.Violation{{Param: "/email", Rule: "format", Message: "Enter an email address such as anna@example.com."}}
	}
	return nil
}

func nameViolations(name string) []fault.Violation {
	if len(name) > 100 || !utf8.ValidString(name) || strings.ContainsAny(name, "\r\n\t\x00") {
		return []fault.Violation{{Param: "/name", Rule: "max_length", Message: "A name is one line of at most 100 bytes."}}
	}
	return nil
}

// Users lists the users by address, at most 1000.
func (s *Store) Users(ctx context.Context) ([]User, error) {
	rows, err := s.q.UsersList(ctx)
	list := make([]User, len(rows))
	for i, row := range rows {
		list[i] = userOf(row)
	}
	return list, wrapError("list users", err)
}

// User finds a user by id or address.
func (s *Store) User(ctx context.Context, ref string) (User, error) {
	find := s.q.UserByEmail
	if strings.HasPrefix(ref, "mbr_") {
		find = s.q.UserByID
	}
	row, err := find(ctx, ref)
	if isMissing(err) {
		return User{}, unknownUser(ref)
	}
	return userOf(row), wrapError("find user", err)
}

func unknownUser(ref string) error {
	return fault.Invalid(fault.Violation{Param: "/user", Rule: "exists", Message: "There is no user " + ref + "."})
}

// UserChange is a change of a user. Nil leaves a field as it is.
type UserChange struct {
	Name     *string
	Email    *string
	Admin    *bool
	Disabled *bool
}

// Update changes a user. The last administrator stays one. A user who is disabled is signed out.
func (s *Store) Update(ctx context.Context, id string, c UserChange) (User, error) {
	var violations []fault.Violation
	if c.Name != nil {
		*c.Name = strings.TrimSpace(*c.Name)
		violations = append(violations, nameViolations(*c.Name)...)
	}
	if c.Email != nil {
		*c.Email = strings.TrimSpace(*c.Email)
		violations = append(violations, emailViolations(*c.Email)...)
	}
	if len(violations) > 0 {
		return User{}, fault.Invalid(violations...)
	}
	var row db.User
	err := replan.InTx(ctx, s.pool, func(tx pgx.Tx) (err error) {
		q := s.q.WithTx(tx)
		if err := q.UsersLock(ctx); err != nil {
			return err
		}
		if c.Admin != nil && !*c.Admin || c.Disabled != nil && *c.Disabled {
			if err := keepAdmin(ctx, q, id); err != nil {
				return err
			}
		}
		row, err = q.UserUpdate(ctx, db.UserUpdateParams{ID: id, Name: c.Name, Email: c.Email, IsAdmin: c.Admin, Disabled: c.Disabled})
		if err == nil && c.Disabled != nil && *c.Disabled {
			_, err = q.WebSessionDeleteOthers(ctx, id, "")
		}
		return err
	})
	switch {
	case isMissing(err):
		return User{}, unknownUser(id)
	case pgerr.IsUniqueViolation(err):
		return User{}, emailInUse(*c.Email)
	}
	return userOf(row), wrapError("update user", err)
}

// keepAdmin fails for the last administrator.
func keepAdmin(ctx context.Context, q *db.Queries, id string) error {
	user, err := q.UserByID(ctx, id)
	if err != nil || !user.IsAdmin || user.DisabledAt != nil {
		return err
	}
	others, err := q.UserOtherAdmins(ctx, id)
	if err == nil && others == 0 {
		return fault.Invalid(fault.Violation{Param: "/is_admin", Rule: "last_admin",
			Message: "This is the only administrator who can sign in. Make another user an administrator first."})
	}
	return err
}

// SetPassword replaces a user's password and signs the user out everywhere but in one session; "":
// in all.
func (s *Store) SetPassword(ctx context.Context, id, password, keep string) error {
	user, err := s.User(ctx, id)
	if err != nil {
		return err
	}
	if err := CheckPassword(password, user.Email); err != nil {
		return err
	}
	hash, err := s.hashPassword(ctx, password)
	if err != nil {
		return err
	}
	return wrapError("set password", replan.InTx(ctx, s.pool, func(tx pgx.Tx) error {
		q := s.q.WithTx(tx)
		if _, err := q.UserPassword(ctx, user.ID, hash); err != nil {
			return err
		}
		if err := q.LoginLinksOfUser(ctx, &user.ID, linkPassword); err != nil {
			return err
		}
		_, err := q.WebSessionDeleteOthers(ctx, user.ID, keep)
		return err
	}))
}

// ChangePassword replaces the password of a signed-in user, who must know the present one.
func (s *Store) ChangePassword(ctx context.Context, id, present, password, session string) error {
	row, err := s.q.UserByID(ctx, id)
	if err != nil {
		return wrapError("find user", err)
	}
	if row.PasswordHash != nil {
		ok, err := s.passwordMatches(ctx, present, *row.PasswordHash)
		if err != nil {
			return err
		}
		if !ok {
			return fault.Invalid(fault.Violation{Param: "/present", Rule: "password", Message: "This is not your present password."})
		}
	}
	return s.SetPassword(ctx, id, password, session)
}

// Verify returns the user with an address and a password. Everything that is wrong gives ok = false
// and takes as long.
func (s *Store) Verify(ctx context.Context, email, password string) (u User, ok bool, err error) {
	row, err := s.q.UserByEmail(ctx, strings.TrimSpace(email))
	if err != nil && !isMissing(err) {
		return User{}, false, wrapError("find user", err)
	}
	hash := dummyHash
	known := err == nil && row.PasswordHash != nil && row.DisabledAt == nil
	if known {
		hash = *row.PasswordHash
	}
	if len(password) > maxPassword {
		password = ""
	}
	same, err := s.passwordMatches(ctx, password, hash)
	if err != nil || !same || !known {
		return User{}, false, err
	}
	return userOf(row), true, nil
}

// HasAdmin reports whether an administrator exists who can sign in.
func (s *Store) HasAdmin(ctx context.Context) (bool, error) {
	if s.hasAdmin.Load() {
		return true, nil
	}
	ok, err := s.q.UserAdminExists(ctx)
	if ok && err == nil {
		s.hasAdmin.Store(true)
	}
	return ok, wrapError("look for an administrator", err)
}
