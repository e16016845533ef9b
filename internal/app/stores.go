package app

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-server/parley/internal/devdb"
	"github.com/parley-server/parley/internal/egress"
	"github.com/parley-server/parley/internal/eventlog"
	"github.com/parley-server/parley/internal/session"
	"github.com/parley-server/parley/internal/store/account"
	"github.com/parley-server/parley/internal/store/agent"
	"github.com/parley-server/parley/internal/store/apikey"
	"github.com/parley-server/parley/internal/store/budget"
	"github.com/parley-server/parley/internal/store/callback"
	"github.com/parley-server/parley/internal/store/chain"
	"github.com/parley-server/parley/internal/store/chain/anchor"
	"github.com/parley-server/parley/internal/store/filestore"
	"github.com/parley-server/parley/internal/store/modelset"
	"github.com/parley-server/parley/internal/store/permission"
	"github.com/parley-server/parley/internal/store/skill"
	"github.com/parley-server/parley/internal/store/toolset"
	"github.com/parley-server/parley/internal/store/vault"
	"github.com/parley-server/parley/internal/store/wiki"
	"github.com/parley-server/parley/internal/store/workspace"
	"github.com/parley-server/parley/internal/toolenv"
	"github.com/parley-server/parley/internal/toolenv/workdir"
)

// Stores are the owners of the tables, opened on the database without a server. The commands for
// administrators call them. None of them runs anything in the background. The caller closes them.
type Stores struct {
	DSN         Secret // the database
	Workspaces  *workspace.Store
	Keys        *apikey.Store
	Accounts    *account.Store
	Wiki        *wiki.Store
	Skills      *skill.Store
	Agents      *agent.Store
	Permissions *permission.Store
	Budgets     *budget.Store
	Toolset     *toolset.Store
	Modelset    *modelset.Store
	Secrets     *vault.Store     // without master keys: it can list and remove; see OpenVault
	Callbacks   *callback.Store  // without master keys
	Sessions    *session.Store   // with the retention of the settings
	Files       *filestore.Store // without master keys: it can erase
	Folders     *workdir.Store   // the files of sessions' agents
	Runner      *toolenv.Runner  // for its records; it runs no commands
	Chain       *chain.Store     // without master keys: it verifies and does not extend

	config Config
	pool   *pgxpool.Pool
	guard  *egress.Guard
	keys   Secret // master keys; "" if there are none
	noKey  string // how to create one
	dev    *devdb.Server
}

// OpenStores connects to DATABASE_URL, else to the development database: that of
// PARLEY_DATABASE_URL, or the one in dir, which it starts if necessary. The first connection to a
// restored database continues its ids, as a server does, and logs that.
func OpenStores(ctx context.Context, cfg Config, dir string, log *slog.Logger) (*Stores, error) {
	return openStores(ctx, cfg, dir, eventlog.CheckLineage(log))
}

// ReadStores connects as OpenStores does, and writes nothing: PostgreSQL rejects every change. It
// works with a role that can only read, on a restored copy and on a standby.
func ReadStores(ctx context.Context, cfg Config, dir string, _ *slog.Logger) (*Stores, error) {
	return openStores(ctx, cfg, dir, func(ctx context.Context, conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, "SET default_transaction_read_only = on")
		return err
	})
}

func openStores(ctx context.Context, cfg Config, dir string, check func(context.Context, *pgx.Conn) error) (_ *Stores, err error) {
	s := &Stores{config: cfg, DSN: cfg.DatabaseURL, keys: cfg.VaultKey, noKey: noKey}
	defer func() {
		if err != nil {
			s.Close()
		}
	}()
	if s.DSN == "" {
		if err := s.findDev(ctx, cfg, dir); err != nil {
			return nil, err
		}
	}
	if err := s.findKeys(dir); err != nil {
		return nil, err
	}
	if s.pool, err = openPool(ctx, s.DSN, "parley command", commandConnections, check); err != nil {
		return nil, err
	}
	if _, err = awaitDatabase(ctx, s.pool, 2*connectTimeout, nil); err != nil {
		return nil, err
	}
	if s.guard, err = egress.New(egress.Config{}); err != nil { // these commands send no requests
		return nil, err
	}
	s.Workspaces, s.Keys, s.Wiki = workspace.New(s.pool), apikey.New(s.pool, nil), wiki.New(s.pool)
	s.Accounts = account.New(s.pool, nil)
	s.Skills, s.Agents, s.Permissions = skill.New(s.pool), agent.New(s.pool), permission.New(s.pool)
	s.Agents.Accept = cfg.checkCost
	s.Budgets, s.Toolset, s.Modelset = budget.New(s.pool), toolset.NewStore(s.pool), modelset.New(s.pool)
	s.Secrets, s.Callbacks = vault.New(s.pool, nil), callback.NewStore(s.pool, nil, s.guard)
	s.Folders, s.Runner = workdir.New(s.pool, workdir.Options{}), toolenv.New(toolenv.Config{Pool: s.pool})
	s.Files = filestore.New(s.pool, nil, filestore.Options{})
	s.Chain = chain.New(s.pool, nil, chain.Options{})
	kept := cfg.sessionOptions()
	kept.Erase = []session.Eraser{s.Files.Erase, s.Callbacks.Erase, s.Folders.Erase, s.Runner.Erase, s.Toolset.Erase, s.Chain.Erase}
	s.Sessions = session.New(s.pool, eventlog.New(s.pool, eventlog.Options{}), kept)
	return s, nil
}

// OpenVault opens the vault with the master keys. Without them, its error explains how to create
// one.
func (s *Stores) OpenVault(ctx context.Context) (*vault.Store, error) {
	if s.keys == "" {
		return nil, &ConfigError{[]string{s.noKey}}
	}
	return openVault(ctx, s.pool, s.keys)
}

// Keyring returns the master keys, once they are seen to fit the database. Unlike OpenVault, it
// writes nothing.
func (s *Stores) Keyring(ctx context.Context) (*vault.Keyring, error) {
	switch {
	case s.keys == "" && s.noKey == noKey:
		return nil, &ConfigError{[]string{noServerKey}}
	case s.keys == "":
		return nil, &ConfigError{[]string{s.noKey}}
	}
	keys, err := vault.ParseKeys(s.keys.Reveal())
	if err != nil {
		return nil, &ConfigError{[]string{sentenceOf(err)}}
	}
	if err := explainKeys(vault.New(s.pool, keys).Check(ctx)); err != nil {
		return nil, err
	}
	return keys, nil
}

// DeleteWorkspace removes a workspace with everything in it, in this order: its keys, so that no
// client starts a turn; its sessions, whose running turns are canceled; its files; the rest. It can
// be repeated after an error.
func (s *Stores) DeleteWorkspace(ctx context.Context, id uuid.UUID, by string) (sessions, canceled int, err error) {
	keys, err := s.Keys.List(ctx, id)
	if err != nil {
		return 0, 0, err
	}
	for _, k := range keys {
		if err := s.Keys.Revoke(ctx, id, k.ID); err != nil && !errors.Is(err, apikey.ErrNotFound) {
			return 0, 0, err
		}
	}
	if sessions, canceled, err = s.Sessions.EraseAll(ctx, id, by); err != nil {
		return sessions, canceled, err
	}
	if err := s.Files.DeleteAll(ctx, id); err != nil {
		return sessions, canceled, err
	}
	return sessions, canceled, s.Workspaces.Delete(ctx, id)
}

// Close closes the connections, and stops the development database if no server uses it.
func (s *Stores) Close() {
	if s.pool != nil {
		closePool(s.pool, time.Second)
	}
	if s.dev != nil {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		_ = s.dev.Stop(ctx) // the guard completes it
	}
}

func (s *Stores) findDev(ctx context.Context, cfg Config, dir string) error {
	env, err := ReadDevEnv(dir)
	if err != nil {
		return err
	}
	s.DSN = cfg.DevURL
	if s.DSN != "" && s.DSN.Reveal() != env.DatabaseURL {
		s.noKey = "PARLEY_DATABASE_URL names the database of a serve --dev, whose master key is in its own folder. " +
			"Run the command there, or set PARLEY_VAULT_KEY_FILE to the " + devKeys(DevDir) + " of that folder."
		return nil
	}
	if _, err := os.Stat(devPostgres(dir)); err == nil {
		if s.dev, err = devdb.Start(ctx, cfg.devOptions(dir, nil)); err != nil {
			return &StartError{Why: "The development database does not start:", Do: "Run parley serve --dev here, or set DATABASE_URL.", Err: err}
		}
		s.DSN = Secret(s.dev.DSN(devDatabase))
		return nil
	}
	if cfg.DevURL == "" {
		if err := env.CheckDatabase(); err != nil {
			return err
		}
	}
	if s.DSN = Secret(env.DatabaseURL); s.DSN == "" {
		return &ConfigError{[]string{"DATABASE_URL is not set, and there is no development database in " + dir + "."}}
	}
	return nil
}

// findKeys uses the development keys only for the development database: a database is bound to the
// first keys that it is opened with.
func (s *Stores) findKeys(dir string) error {
	env, err := ReadDevEnv(dir)
	if err != nil || s.keys != "" || s.DSN.Reveal() != env.DatabaseURL {
		return err
	}
	if _, err := os.Stat(devKeys(dir)); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	s.keys, err = readKeys(devKeys(dir))
	return err
}

// sessionOptions returns the configured retention.
func (c Config) sessionOptions() session.Options {
	return session.Options{Replay: time.Duration(c.ReplayWindow), Audit: time.Duration(c.AuditRetention)}
}

// headStores returns where the heads of the log are stored.
func (c Config) headStores() ([]chain.HeadStore, error) {
	return anchor.Parse(c.AuditHeads, anchor.Options{Secret: c.HeadsSecret.Reveal(),
		S3: anchor.S3{Endpoint: c.S3Endpoint, Region: c.S3Region, Key: c.S3Key, Secret: c.S3Secret.Reveal(), Token: c.S3Token.Reveal()}})
}
