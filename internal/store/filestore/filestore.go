// Package filestore owns files: those that callers send in, and those that turns
// produce. It is the only writer of their tables and the only maker of their signed
// addresses.
//
// It promises: a file is there as a whole, of the size, the hash and the type that
// were declared, or not at all, whatever dies on the way; bytes stream in and out,
// no file is ever held in memory, and no transaction waits for a caller; a signed
// address opens one file, in one way, until its time is over. It never unpacks what
// it is given, and a caller's filename is never the name of anything.
package filestore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-server/parley/db"
	"github.com/parley-server/parley/internal/egress"
	"github.com/parley-server/parley/internal/fair"
	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/pulse"
	"github.com/parley-server/parley/internal/replan"
	"github.com/parley-server/parley/internal/store/vault"
)

const (
	// MaxSize is how large a file may be, in bytes.
	MaxSize = 25 << 20
	// MaxTTL is how long a signed address may be valid.
	MaxTTL = 7 * 24 * time.Hour
	// UploadTime is how long the address of a ticket is valid, and how long sending
	// the bytes may take.
	UploadTime = 15 * time.Minute
	// MaxFetching is how many files of a workspace may wait for being fetched.
	MaxFetching = 16
	// MaxAttached is how many files may come with a message.
	MaxAttached = 20
	// MaxProduced is how many files a turn may produce.
	MaxProduced = 100
	// MaxDownloads is how many files one request for downloads answers with.
	MaxDownloads = 1000
)

// chunkSize is the size of a stored chunk. It cannot change: it is where the bytes
// of every stored file are.
const chunkSize = 256 << 10

// Options configure a Store. The zero value works.
type Options struct {
	// Base is the public address of the service, for signed addresses. Without it
	// they are paths, which the way in completes.
	Base string
	// TTL is how long the address of a download is valid: at most, and by default, MaxTTL.
	TTL time.Duration
	// Guard decides what may be fetched. Nil refuses every origin_url.
	Guard *egress.Guard
	// Fetchers is how many files this process fetches at once; workspaces share these places. 0:
	// none, others do.
	Fetchers int
	Log      *slog.Logger
	Pulse    *pulse.Pulse // shared by the parts of a process; nil: the store has its own
}

// Store keeps files.
type Store struct {
	pool  *pgxpool.Pool
	q     *db.Queries
	lists *db.Queries // each query is planned for its filters
	keys  *vault.Keyring
	opt   Options
	log   *slog.Logger
	news  chan struct{} // there is something to fetch

	fetches *fair.Places
}

// New makes a store. Run fetches files and removes expired ones.
func New(pool *pgxpool.Pool, keys *vault.Keyring, opt Options) *Store {
	opt.TTL = min(cmp.Or(opt.TTL, MaxTTL), MaxTTL)
	if opt.Log == nil {
		opt.Log = slog.New(slog.DiscardHandler)
	}
	if opt.Pulse == nil {
		opt.Pulse = pulse.New(pool)
	}
	return &Store{pool: pool, q: db.New(replan.Pool{Pool: pool}), lists: db.New(replan.Fresh{Pool: pool}), keys: keys, opt: opt, log: opt.Log,
		news: make(chan struct{}, 1), fetches: fair.New(opt.Fetchers)}
}

// TTL is how long the address of a download is valid.
func (s *Store) TTL() time.Duration { return s.opt.TTL }

// shortContext bounds what one statement may wait for, where the caller's context lasts as
// long as an upload.
func shortContext(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, 3*time.Second)
}

// fileRow reads a file, or fails with FILE_NOT_FOUND.
func (s *Store) fileRow(ctx context.Context, workspace, id uuid.UUID) (db.File, error) {
	row, err := s.q.FileGet(ctx, workspace, id)
	if errors.Is(err, pgx.ErrNoRows) {
		return row, notFound()
	}
	if err != nil {
		return row, fmt.Errorf("read file: %w", err)
	}
	return row, nil
}

func (s *Store) databaseTime(ctx context.Context, q *db.Queries) (time.Time, error) {
	now, err := q.FileClock(ctx)
	if err != nil {
		return now, fmt.Errorf("read the clock: %w", err)
	}
	return now, nil
}

func notFound() error { return fault.New(fault.FileNotFound, "There is no such file.") }
