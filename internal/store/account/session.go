package account

import (
	"context"
	"strings"
	"time"

	"github.com/parley-server/parley/db"
	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/store/apikey"
)

// Session is a browser that is signed in.
type Session struct {
	ID        string
	Address   string
	Agent     string
	CreatedAt time.Time
	SeenAt    time.Time
}

// SignedIn is the user of a cookie.
type SignedIn struct {
	User
	Session string // id of the web session
}

// Begin signs a user in and returns the value of the cookie. The session has a new id and a new
// secret, whatever cookie the browser sent.
func (s *Store) Begin(ctx context.Context, user, address, agent string) (cookie string, err error) {
	id, secret := newID("ws_"), newSecret()
	if len(agent) > 300 {
		agent = agent[:300]
	}
	agent = strings.ToValidUTF8(agent, "")
	if err := s.q.WebSessionInsert(ctx, db.WebSessionInsertParams{ID: id, UserID: user, SecretHash: hashToken(secret), Address: address,
		Agent: agent}); err != nil {
		return "", wrapError("store a web session", err)
	}
	if err := s.q.UserSignedIn(ctx, user); err != nil {
		return "", wrapError("note a sign-in", err)
	}
	return id + "." + secret, nil
}

// Authenticate returns the user of a cookie; ok is false if the cookie is not valid.
func (s *Store) Authenticate(ctx context.Context, cookie, address string) (in SignedIn, ok bool, err error) {
	id, secret, found := strings.Cut(cookie, ".")
	if !found || len(cookie) > 200 || !strings.HasPrefix(id, "ws_") {
		return SignedIn{}, false, nil
	}
	row, err := s.q.WebSessionByID(ctx, id)
	if isMissing(err) || err == nil && !isToken(secret, row.WebSession.SecretHash) {
		return SignedIn{}, false, nil
	}
	if err != nil {
		return SignedIn{}, false, wrapError("find a web session", err)
	}
	if row.Unnoted {
		if err := s.q.WebSessionSeen(ctx, id, address); err != nil {
			s.log.WarnContext(ctx, "note the use of a web session", "web_session", id, "err", err)
		}
	}
	return SignedIn{userOf(row.User), id}, true, nil
}

// RoleIn returns the role of a user in a workspace, by its slug or id; ok is false without one.
func (s *Store) RoleIn(ctx context.Context, u User, workspace string) (role apikey.Role, ok bool, err error) {
	if u.Admin {
		return apikey.Owner, true, nil
	}
	list, err := s.Memberships(ctx, u.ID)
	for _, m := range list {
		if m.Slug == workspace || m.Workspace.String() == workspace {
			return m.Role, true, nil
		}
	}
	return "", false, err
}

// End signs a browser out.
func (s *Store) End(ctx context.Context, user, session string) error {
	n, err := s.q.WebSessionDelete(ctx, user, session)
	if err == nil && n == 0 {
		return fault.Invalid(fault.Violation{Param: "/session", Rule: "exists", Message: "This browser is signed out already."})
	}
	return wrapError("end a web session", err)
}

// EndOthers signs a user out everywhere but in one session.
func (s *Store) EndOthers(ctx context.Context, user, keep string) (int, error) {
	n, err := s.q.WebSessionDeleteOthers(ctx, user, keep)
	return int(n), wrapError("end web sessions", err)
}

// Sessions lists the browsers of a user, the latest first.
func (s *Store) Sessions(ctx context.Context, user string) ([]Session, error) {
	rows, err := s.q.WebSessionsList(ctx, user)
	list := make([]Session, len(rows))
	for i, r := range rows {
		list[i] = Session{r.ID, r.Address, r.Agent, r.CreatedAt, r.SeenAt}
	}
	return list, wrapError("list web sessions", err)
}

// pruneExpired removes what has expired, once an hour.
func (s *Store) pruneExpired(ctx context.Context) {
	tick := time.NewTicker(time.Hour)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		for _, remove := range []func(context.Context) error{s.q.WebSessionsPrune, s.q.LoginLinksPrune, s.q.OIDCStatesPrune} {
			limited, cancel := context.WithTimeout(ctx, 10*time.Second)
			if err := remove(limited); err != nil && ctx.Err() == nil {
				s.log.WarnContext(ctx, "remove expired sign-ins", "err", err)
			}
			cancel()
		}
	}
}
