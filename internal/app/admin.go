package app

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-server/parley/internal/devdb"
	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/search"
	"github.com/parley-server/parley/internal/store/apikey"
	"github.com/parley-server/parley/internal/store/permission"
	"github.com/parley-server/parley/internal/store/skill"
	"github.com/parley-server/parley/internal/store/wiki"
	"github.com/parley-server/parley/internal/store/workspace"
	"github.com/parley-server/parley/internal/toolenv"
	"github.com/parley-server/parley/migrations"
)

// Admin does the work of the commands for administrators, straight on the database
// and without a server. Close it.
type Admin struct {
	Workspaces  *workspace.Store
	Keys        *apikey.Store
	Wiki        *wiki.Store
	Skills      *skill.Store
	Permissions *permission.Store
	Runner      *toolenv.Runner // for its records; it runs nothing

	dsn   Secret
	keys  Secret // master keys; "" where there are none
	noKey string // how to come to one
	pool  *pgxpool.Pool
	dev   *devdb.Server
}

// OpenAdmin connects to DATABASE_URL, else to the development database: that of
// PARLEY_DATABASE_URL, or the one in dir, which is started if it does not run.
func OpenAdmin(ctx context.Context, cfg Config, dir string) (*Admin, error) {
	a := &Admin{dsn: cfg.DatabaseURL, keys: cfg.VaultKey, noKey: noKey}
	if a.dsn == "" {
		if err := a.findDev(ctx, cfg, dir); err != nil {
			return nil, err
		}
	}
	if err := a.findKeys(dir); err != nil {
		a.Close()
		return nil, err
	}
	pool, err := openPool(ctx, a.dsn, "parley command", commandConnections, nil)
	if err == nil {
		a.pool = pool
		_, err = reach(ctx, pool, 2*connectTimeout, nil)
	}
	if err != nil {
		a.Close()
		return nil, err
	}
	a.Workspaces, a.Keys, a.Wiki = workspace.New(pool), apikey.New(pool, nil), wiki.New(pool)
	a.Skills, a.Permissions = skill.New(pool), permission.New(pool)
	a.Runner = toolenv.New(toolenv.Config{Pool: pool})
	return a, nil
}

func (a *Admin) findDev(ctx context.Context, cfg Config, dir string) error {
	env, err := ReadDevEnv(dir)
	if err != nil {
		return err
	}
	a.dsn = cfg.DevURL
	if a.dsn != "" && a.dsn.Reveal() != env.DatabaseURL {
		a.noKey = "PARLEY_DATABASE_URL names the database of a serve --dev, whose master key is in its own folder. " +
			"Run the command there, or set PARLEY_VAULT_KEY_FILE to the " + devKeys(DevDir) + " of that folder."
		return nil
	}
	if _, err := os.Stat(devPostgres(dir)); err == nil {
		if a.dev, err = devdb.Start(ctx, devdb.Options{Dir: devPostgres(dir), Bin: cfg.PostgresBin, Repository: cfg.PostgresRepository.Reveal()}); err != nil {
			return &StartError{Why: "The development database does not start:", Do: "Run parley serve --dev here, or set DATABASE_URL.", Err: err}
		}
		a.dsn = Secret(a.dev.DSN(devDatabase))
		return nil
	}
	if cfg.DevURL == "" {
		if err := env.CheckDatabase(); err != nil {
			return err
		}
	}
	if a.dsn = Secret(env.DatabaseURL); a.dsn == "" {
		return &ConfigError{[]string{"DATABASE_URL is not set, and there is no development database in " + dir + "."}}
	}
	return nil
}

// Close gives the connections up.
func (a *Admin) Close() {
	if a.pool != nil {
		closePool(a.pool, time.Second)
	}
	if a.dev != nil {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		_ = a.dev.Stop(ctx) // the guard finishes what is left
	}
}

// Migrate brings the database to this release's schema.
func (a *Admin) Migrate(ctx context.Context, log *slog.Logger) (migrations.Result, error) {
	return migrations.Up(ctx, a.dsn.Reveal(), migrations.Options{Log: log})
}

// Migrations lists what this release knows and what the database has.
func (a *Admin) Migrations(ctx context.Context) ([]migrations.Step, error) {
	return migrations.Status(ctx, a.dsn.Reveal())
}

// Scopes reads the names of scopes. A preset stands for several.
func Scopes(names []string) (apikey.Scopes, error) {
	var scopes apikey.Scopes
	known := []string{"all"}
	for _, s := range apikey.All {
		known = append(known, string(s))
	}
	var wrong []fault.Violation
	for _, name := range names {
		switch {
		case name == "all":
			scopes = append(scopes, apikey.All...)
		case apikey.Scope(name).Known():
			scopes = append(scopes, apikey.Scope(name))
		default:
			message := "There is no scope " + name + "."
			if near := search.Nearest(name, known, 1); len(near) > 0 {
				message += " Did you mean " + near[0] + "?"
			} else {
				message += " The scopes are " + strings.Join(known, ", ") + "."
			}
			wrong = append(wrong, fault.Violation{Param: "/scopes", Rule: "enum", Message: message})
		}
	}
	if len(wrong) > 0 {
		return nil, fault.Invalid(wrong...)
	}
	return scopes, nil
}

// ScopeNames is the reverse of Scopes.
func ScopeNames(scopes apikey.Scopes) string {
	if len(scopes) == len(apikey.All) {
		return "all"
	}
	return scopes.String()
}

// Refusal is the sentence of an error that the caller can mend, or a line for every
// thing that is wrong.
func Refusal(err error) (sentence string, ok bool) {
	switch f := fault.From(err); {
	case f != nil && len(f.Detail.Violations) > 1:
		lines := make([]string, len(f.Detail.Violations))
		for i, v := range f.Detail.Violations {
			lines[i] = v.Message
		}
		return strings.Join(lines, "\n"), true
	case f != nil:
		return f.Message, true
	case errors.Is(err, apikey.ErrNotFound):
		return "The workspace has no such key, or it is revoked or expired.", true
	case errors.Is(err, apikey.ErrReplaced):
		return "The key is rotated already; rotate the key that took its place.", true
	case errors.Is(err, apikey.ErrOnlyOne):
		return "A workspace has one webhook_token and it is not rotated: revoke it, then make another.", true
	}
	return "", false
}
