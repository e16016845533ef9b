package web

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/store/account"
	"github.com/parley-server/parley/internal/store/ratelimit"
)

// How many passwords may be tried in a minute.
const (
	triesOfAccount = 5
	triesOfAddress = 30
)

// loginPage asks for the password. A sign-in link of development mode signs in at once.
func (a *App) loginPage(w http.ResponseWriter, p *page) error {
	if text := p.URL.Query().Get("token"); text != "" {
		u, err := a.accounts.TakeLogin(p.Context(), text)
		if err == nil {
			return a.signIn(w, p, u, "/")
		}
		f := emptyForm()
		if err := f.take(err); err != nil {
			return err
		}
		return a.showLogin(w, p, http.StatusUnprocessableEntity, f)
	}
	exists, err := a.accounts.HasAdmin(p.Context())
	if err != nil {
		return err
	}
	if !exists && !a.groupsGrantAdmin() {
		return p.redirect(w, "/setup")
	}
	if p.Visitor != nil {
		return p.redirect(w, "/")
	}
	return a.showLogin(w, p, http.StatusOK, emptyForm("next", nextPath(p.URL.Query().Get("next"))))
}

func (a *App) showLogin(w http.ResponseWriter, p *page, status int, f *form) error {
	return a.renderStatus(w, p, status, "login", f)
}

// login checks an address and a password.
func (a *App) login(w http.ResponseWriter, p *page) error {
	f := newForm(p)
	email := strings.TrimSpace(f.Value("email"))
	left, err := a.countTry(p, email)
	if f.Note = tooMany(err); f.Note != "" {
		w.Header().Set("Retry-After", "60")
		return a.showLogin(w, p, http.StatusTooManyRequests, f)
	}
	if err != nil {
		return err
	}
	u, ok, err := a.accounts.Verify(p.Context(), email, f.Value("password"))
	if err != nil {
		return err
	}
	if !ok {
		f.fail("password", fmt.Sprintf("Email or password is wrong. %s in this minute.", plural(left, "more try", "more tries")))
		return a.showLogin(w, p, http.StatusUnprocessableEntity, f)
	}
	return a.signIn(w, p, u, nextPath(f.Value("next")))
}

// signIn begins a web session with a new cookie and ends the one that the browser had.
func (a *App) signIn(w http.ResponseWriter, p *page, u account.User, next string) error {
	if p.Visitor != nil {
		if err := a.accounts.End(p.Context(), p.Visitor.ID, p.Visitor.Session); err != nil && fault.From(err) == nil {
			return err
		}
	}
	value, err := a.accounts.Begin(p.Context(), u.ID, a.srv.ClientAddress(p.Request).String(), p.UserAgent())
	if err != nil {
		return err
	}
	http.SetCookie(w, a.cookie(p, value, 400*24*time.Hour))
	return p.redirect(w, strings.TrimPrefix(next, a.root))
}

// cookie returns the cookie of a web session. The server ends sessions that are idle for 14 days.
func (a *App) cookie(p *page, value string, life time.Duration) *http.Cookie {
	return &http.Cookie{Name: a.srv.SessionCookie(p.Request), Value: value, Path: "/", MaxAge: int(life.Seconds()),
		HttpOnly: true, Secure: a.srv.IsSecure(p.Request), SameSite: http.SameSiteLaxMode}
}

// logout ends the web session.
func (a *App) logout(w http.ResponseWriter, p *page) error {
	if p.Visitor != nil {
		if err := a.accounts.End(p.Context(), p.Visitor.ID, p.Visitor.Session); err != nil && fault.From(err) == nil {
			return err
		}
	}
	http.SetCookie(w, a.cookie(p, "", -time.Second))
	return p.redirect(w, "/login")
}

// countTry counts a password for the address of the client and for the account, and returns how many
// more the account may try.
func (a *App) countTry(p *page, email string) (left int, err error) {
	if a.srv.Limits == nil {
		return triesOfAccount, nil
	}
	// A request that cannot be counted is rejected: passwords must not be tried without a limit.
	if _, err := a.take(p.Context(), "address:"+network(a.srv.ClientAddress(p.Request)), triesOfAddress); err != nil {
		return 0, err
	}
	sum := sha256.Sum256([]byte(strings.ToLower(email)))
	q, err := a.take(p.Context(), "account:"+hex.EncodeToString(sum[:12]), triesOfAccount)
	return q.Left, err
}

func (a *App) take(ctx context.Context, key string, size int) (ratelimit.Quota, error) {
	return a.srv.Limits.Take(ctx, key, "passwords", size)
}

// network returns the address, or the /64 of an IPv6 address, whose owner has all of it.
func network(addr netip.Addr) string {
	if addr.Is6() {
		if prefix, err := addr.Prefix(64); err == nil {
			return prefix.String()
		}
	}
	return addr.String()
}

// tooMany returns the text for an error that means too many tries.
func tooMany(err error) string {
	f := fault.From(err)
	if f == nil || f.Code != fault.RateLimited {
		return ""
	}
	return fmt.Sprintf("Too many passwords were tried. Wait %d seconds, then try again.", max(1, int(f.Detail.RetryAfter.Seconds()+0.999)))
}
