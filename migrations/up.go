package migrations

import (
	"cmp"
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	mathrand "math/rand/v2"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"

	"github.com/parley-server/parley/internal/crashpoint"
	"github.com/parley-server/parley/internal/pgerr"
)

// Options configure Up and DownTo. The zero value works.
type Options struct {
	Log   *slog.Logger // receives every applied step and every retry
	Tries int          // how often a step is tried that fails because of a lock: 60, about a minute

	files fs.FS // the embedded ones
}

// Result is the changes of one call.
type Result struct {
	Applied int // our files
	River   int // River's
}

// String returns the start-up line: "12 applied, River 6 applied".
func (r Result) String() string {
	if r == (Result{}) {
		return "up to date"
	}
	return fmt.Sprintf("%d applied, River %d applied", r.Applied, r.River)
}

// Up migrates the database to this binary's schema. The DSN must reach PostgreSQL directly, not
// through a transaction pooler, which would lose the lock.
func Up(ctx context.Context, dsn string, opts Options) (Result, error) {
	m, err := open(ctx, dsn, opts)
	if err != nil {
		return Result{}, err
	}
	defer m.close()
	held, err := m.acquire(ctx)
	if err != nil {
		return Result{}, err
	}
	defer held.release(ctx)

	var done Result
	if done.Applied, err = m.repeat(ctx, held, m.gooseUp); err != nil {
		return done, err
	}
	owns := false
	if _, err := m.try(ctx, held, func(ctx context.Context) (_ string, err error) {
		owns, err = m.ownsLog(ctx)
		return "", err
	}); err != nil {
		return done, err
	}
	if owns {
		if _, err := m.repeat(ctx, held, m.indexPartition); err != nil {
			return done, err
		}
	}
	if done.River, err = m.repeat(ctx, held, m.riverUp); err != nil || !owns {
		return done, err
	}
	_, err = m.try(ctx, held, func(ctx context.Context) (string, error) { return "", m.repeatGrants(ctx) })
	return done, err
}

// DownTo reverts our files to a version, newest first. River's stay, because a command about our
// tables must not drop queued jobs.
func DownTo(ctx context.Context, dsn string, version int64, opts Options) (Result, error) {
	m, err := open(ctx, dsn, opts)
	if err != nil {
		return Result{}, err
	}
	defer m.close()
	held, err := m.acquire(ctx)
	if err != nil {
		return Result{}, err
	}
	defer held.release(ctx)

	n, err := m.repeat(ctx, held, func(ctx context.Context) (string, error) { return m.gooseDown(ctx, version) })
	return Result{Applied: n}, err
}

// migrator holds both engines. Every step opens its own connections, so that a file does not
// inherit the settings of the previous one.
type migrator struct {
	name   string // application_name of every connection
	config *pgx.ConnConfig
	files  fs.FS
	tries  int
	log    *slog.Logger
	sql    *sql.DB
	goose  *goose.Provider
	pool   *pgxpool.Pool
	river  *rivermigrate.Migrator[pgx.Tx]
}

// connectionSettings are the settings of every connection. PostgreSQL ends the connection of a
// client that has disappeared, and with it its locks: an idle transaction after 5 s, a dead link
// after 11 s.
const connectionSettings = `SET lock_timeout = '300ms'; SET statement_timeout = 0; SET idle_in_transaction_session_timeout = '5s';
SET tcp_keepalives_idle = '5'; SET tcp_keepalives_interval = '2'; SET tcp_keepalives_count = '3';`

func open(ctx context.Context, dsn string, opts Options) (_ *migrator, err error) {
	config, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		return nil, fmt.Errorf("migrate: %w", err)
	}
	// ALTER TABLE queues behind one slow reader, and all other statements queue behind ALTER TABLE.
	// So it gives up early, lets the queue pass and retries. The settings are set by a statement:
	// PgBouncer rejects them as parameters of the connection.
	name := "parley migration " + rand.Text()[:12]
	config.ConnConfig.AfterConnect = func(ctx context.Context, conn *pgconn.PgConn) error {
		ctx, cancel := context.WithTimeout(ctx, answerTimeout) // ConnectTimeout ends before this
		defer cancel()
		return conn.Exec(ctx, connectionSettings+"SET application_name = '"+name+"'").Close()
	}
	config.MaxConns, config.MinConns, config.MinIdleConns = 2, 0, 0
	config.BeforeClose = func(conn *pgx.Conn) {
		if conn.IsClosed() { // the connection broke: pgx would wait 15 s for the other side
			_ = conn.PgConn().Conn().Close()
		}
	}
	if config.ConnConfig.ConnectTimeout == 0 || config.ConnConfig.ConnectTimeout > answerTimeout {
		config.ConnConfig.ConnectTimeout = answerTimeout
	}

	m := &migrator{
		name:   name,
		config: config.ConnConfig,
		files:  cmp.Or[fs.FS](opts.files, files),
		tries:  cmp.Or(opts.Tries, 60),
		log:    cmp.Or(opts.Log, slog.New(slog.DiscardHandler)),
	}
	m.sql = stdlib.OpenDB(*config.ConnConfig)
	m.sql.SetMaxIdleConns(0)
	defer func() {
		if err != nil {
			m.close()
		}
	}()
	if m.goose, err = goose.NewProvider(goose.DialectPostgres, m.sql, m.files, goose.WithDisableGlobalRegistry(true)); err != nil {
		return nil, fmt.Errorf("read migrations: %w", err)
	}
	if m.pool, err = pgxpool.NewWithConfig(ctx, config); err != nil {
		return nil, fmt.Errorf("migrate: %w", err)
	}
	m.river, err = rivermigrate.New(riverpgxv5.New(m.pool), &rivermigrate.Config{
		Line: riverLine, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return nil, fmt.Errorf("read River's migrations: %w", err)
	}
	return m, nil
}

func (m *migrator) close() {
	m.sql.Close()
	if m.pool != nil {
		m.pool.Close()
	}
}

// repeat runs one step after the other until no step is left, and counts them.
func (m *migrator) repeat(ctx context.Context, held *lock, step func(context.Context) (string, error)) (int, error) {
	for n := 0; ; n++ {
		name, err := m.try(ctx, held, step)
		if err != nil {
			return n, err
		}
		if name == "" {
			return n, nil
		}
		m.log.InfoContext(ctx, "migration applied", "migration", name)
		crashpoint.Hit("migrate.mid")
	}
}

// try retries one step as long as locks make it fail. The pauses are longer than lock_timeout, so
// that traffic has the table most of the time.
func (m *migrator) try(ctx context.Context, held *lock, step func(context.Context) (string, error)) (string, error) {
	for n := 1; ; n++ {
		if err := held.held(ctx); err != nil {
			return "", err
		}
		name, err := held.watch(ctx, step)
		if err == nil || !pgerr.IsContended(err) {
			return name, err
		}
		if n >= m.tries {
			return "", fmt.Errorf("migrate: no lock in %d tries, end the transactions that hold it: %w", n, err)
		}
		m.log.WarnContext(ctx, "migration met a lock, trying again", "try", n, "err", err)
		select {
		case <-ctx.Done():
			return "", fmt.Errorf("migrate: %w", errors.Join(ctx.Err(), err))
		case <-time.After(400*time.Millisecond + mathrand.N(600*time.Millisecond)):
		}
	}
}

// gooseUp applies the next file and returns its name, or "" if none is left.
func (m *migrator) gooseUp(ctx context.Context) (string, error) {
	res, err := m.goose.UpByOne(ctx)
	if errors.Is(err, goose.ErrNoNextVersion) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("migrate: %w", err)
	}
	return res.Source.Path, nil
}

// gooseDown reverts the newest file and returns its name. Without a Down section goose would forget
// that the file was applied and leave its tables.
func (m *migrator) gooseDown(ctx context.Context, version int64) (string, error) {
	now, err := m.goose.GetDBVersion(ctx)
	if err != nil || now <= version {
		return "", err
	}
	for _, src := range m.goose.ListSources() {
		if src.Version != now {
			continue
		}
		text, err := fs.ReadFile(m.files, src.Path)
		if err != nil {
			return "", err
		}
		if !strings.Contains(string(text), "+goose Down") {
			return "", fmt.Errorf("%s cannot be taken back; restore a backup instead", src.Path)
		}
	}
	res, err := m.goose.Down(ctx)
	if err != nil {
		return "", fmt.Errorf("migrate down: %w", err)
	}
	return res.Source.Path, nil
}

// riverUp does the same for River.
func (m *migrator) riverUp(ctx context.Context) (string, error) {
	res, err := m.river.Migrate(ctx, rivermigrate.DirectionUp, &rivermigrate.MigrateOpts{MaxSteps: 1})
	if err != nil {
		return "", fmt.Errorf("migrate River: %w", err)
	}
	if len(res.Versions) == 0 {
		return "", nil
	}
	return fmt.Sprintf("river %03d %s", res.Versions[0].Version, res.Versions[0].Name), nil
}
