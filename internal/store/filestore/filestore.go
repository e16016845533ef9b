// Package filestore owns files: those that callers upload, and those that turns produce. It is the
// only writer of their tables and the only maker of their signed addresses.
//
// It promises: a file is complete, with the declared size, hash and type, or it does not exist,
// whichever process dies; bytes are streamed, no file is ever held in memory, and no transaction
// waits for a caller; a signed address opens one file, in one way, until it expires. It never
// unpacks a file in this process, and never uses a caller's filename as a name in storage.
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
	// MaxSize is the maximum size of a file, in bytes.
	MaxSize = 25 << 20
	// MaxTTL is the maximum validity of a signed address.
	MaxTTL = 7 * 24 * time.Hour
	// UploadTime is how long the address of a ticket is valid, and the time limit for sending the
	// bytes.
	UploadTime = 15 * time.Minute
	// MaxFetching is the maximum number of files of a workspace that wait for a fetch.
	MaxFetching = 16
	// MaxAttached is the maximum number of files in a message.
	MaxAttached = 20
	// MaxProduced is the maximum number of files that a turn may produce.
	MaxProduced = 100
	// MaxDownloads is the maximum number of files in the response to one request for downloads.
	MaxDownloads = 1000
)

// chunkSize is the size of a stored chunk. It cannot change: the offsets in every stored file
// depend on it.
const chunkSize = 256 << 10

// Options configure a Store. The zero value works.
type Options struct {
	// Base is the public address of the service, for signed addresses. Without it they are paths,
	// which the server completes.
	Base string
	// TTL is how long a download address is valid: at most, and by default, MaxTTL.
	TTL time.Duration
	// Guard decides which URLs may be fetched. Nil rejects every origin_url.
	Guard *egress.Guard
	// Fetchers is how many files this process fetches at once; workspaces share these places. 0:
	// none, other processes fetch.
	Fetchers int
	Log      *slog.Logger
	Pulse    *pulse.Pulse // shared by the parts of a process; nil: the store creates its own
}

// Store stores files.
type Store struct {
	pool  *pgxpool.Pool
	q     *db.Queries
	lists *db.Queries // each query is planned for its filters
	keys  *vault.Keyring
	opt   Options
	log   *slog.Logger
	news  chan struct{} // signals that a file waits for a fetch

	fetches *fair.Places
	parsers *fair.Places // of PDFs
}

// New returns a store. Run fetches files and removes expired ones.
func New(pool *pgxpool.Pool, keys *vault.Keyring, opt Options) *Store {
	opt.TTL = min(cmp.Or(opt.TTL, MaxTTL), MaxTTL)
	if opt.Log == nil {
		opt.Log = slog.New(slog.DiscardHandler)
	}
	if opt.Pulse == nil {
		opt.Pulse = pulse.New(pool)
	}
	return &Store{pool: pool, q: db.New(replan.Pool{Pool: pool}), lists: db.New(replan.Fresh{Pool: pool}), keys: keys, opt: opt, log: opt.Log,
		news: make(chan struct{}, 1), fetches: fair.New(opt.Fetchers), parsers: fair.New(pdfParsers)}
}

// TTL returns how long a download address is valid.
func (s *Store) TTL() time.Duration { return s.opt.TTL }

// shortContext limits the time of one statement, in a context that lasts as long as an upload.
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

func notFound() error { return fault.New(fault.FileNotFound, "The file does not exist.") }
