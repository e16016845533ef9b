package app

import (
	"context"
	"errors"
	"fmt"
	"net/url"

	"github.com/parley-server/parley/internal/actor"
	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/store/account"
)

// developer is the administrator of development mode, who has no password.
const developer = "dev@localhost"

// firstAdmin creates the administrator of the settings, or prints the link with which the first one
// is created. In development mode it also prints a link that signs a browser in.
func (s *service) firstAdmin(ctx context.Context) error {
	ctx = actor.With(ctx, actor.Actor{Kind: actor.Command, Name: "serve"})
	if s.Config.AdminEmail != "" {
		created, err := s.accounts.EnsureAdmin(ctx, account.NewUser{Email: s.Config.AdminEmail, Password: s.Config.AdminPassword.Reveal()})
		if f := fault.From(err); f != nil {
			return &ConfigError{[]string{"PARLEY_ADMIN_EMAIL, PARLEY_ADMIN_PASSWORD: " + f.Message}}
		}
		if err != nil {
			return err
		}
		if created {
			s.Log.InfoContext(ctx, "administrator created", "email", s.Config.AdminEmail)
		}
	}
	if s.server == nil {
		return nil
	}
	token, err := s.accounts.NewSetupToken(ctx)
	if err != nil && !errors.Is(err, account.ErrAdminExists) {
		return err
	}
	if s.DevDir != "" {
		link, err := s.developerLink(ctx)
		if err != nil {
			return err
		}
		s.banner.printStep("web", link, 0)
		s.banner.printStep("", "(this link signs one browser in, for 30 minutes)", 0)
	}
	if token != "" {
		s.printSetup(token)
	}
	return nil
}

// printSetup prints the link for the first administrator, and the token on its own line. The log
// does not get it.
func (s *service) printSetup(token string) {
	link := s.webURL("/setup?token=" + url.QueryEscape(token))
	if s.DevDir != "" {
		s.banner.printStep("setup", link, 0)
		s.banner.printStep("", "(creates an administrator with a password, for 30 minutes)", 0)
		return
	}
	fmt.Fprintf(s.Out, "This server has no administrator. Create one in a browser within 30 minutes:\n  %s\nSetup token:\n  %s\n", link, token)
}

// developerLink returns a link that signs the developer in.
func (s *service) developerLink(ctx context.Context) (string, error) {
	u, err := s.accounts.User(ctx, developer)
	if fault.From(err) != nil {
		u, err = s.accounts.Create(ctx, account.NewUser{Email: developer, Name: "Developer", Admin: true})
	}
	if err != nil {
		return "", fmt.Errorf("make the developer: %w", err)
	}
	token, err := s.accounts.NewLoginToken(ctx, u.ID)
	return s.webURL("/login?token=" + url.QueryEscape(token)), err
}

// webURL returns the address of a page for a browser on this machine, or the public one.
func (s *service) webURL(path string) string {
	if base := s.baseURL(); base != "" {
		return base + path
	}
	return s.url + path
}
