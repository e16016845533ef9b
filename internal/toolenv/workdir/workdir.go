// Package workdir owns the files of sessions: the folder in which a session's agent works, which
// outlives the turn, the process and the machine. It is the only writer of its tables.
//
// It promises: the database holds the folder at its last complete save, whatever process dies
// meanwhile; a worker without the lease saves nothing; stored bytes are not sent again, and
// unchanged files are not read again; no file is ever held in memory, and no transaction waits for
// one. Untrusted programs write the folder: no link in it is followed, no pipe blocks, and nothing
// outside it is ever read or written.
package workdir

import (
	"cmp"
	"errors"
	"log/slog"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-server/parley/db"
	"github.com/parley-server/parley/internal/replan"
)

const (
	// Quota is the default limit of the total size of a session's files, in bytes.
	Quota = 512 << 20
	// MaxFiles is the default limit of the names in a session's folder.
	MaxFiles = 20_000
	// MaxFile is the maximum size of one file.
	MaxFile = 64 << 20
	// MaxPath is the maximum length of a path, in bytes.
	MaxPath = 4096
	// MaxDepth is the maximum nesting of folders.
	MaxDepth = 128
	// Attachments is a name in a folder that is not saved: there the agent finds the files from
	// messages.
	Attachments = "attachments"
)

// chunkSize is the size of a stored chunk. It cannot change: the offsets in every stored file
// depend on it.
const chunkSize = 256 << 10

// ErrFenced is returned if a newer claim has the folder, or the session is erased.
var ErrFenced = errors.New("the folder of the session is in newer hands")

// Options configure a Store. The zero value works.
type Options struct {
	Quota int64 // limit of a session's files together, in bytes; zero: the constant of that name
	Files int   // names in a folder; zero: MaxFiles
	// Give changes the owner of a folder that was just filled. Restore calls it, because a later
	// change of owners would look like a change of every file.
	Give func(dir string) error
	// Progress receives the progress of a long Restore or Save; nil: not reported.
	Progress func(Progress)
	Log      *slog.Logger
}

// Store stores the folders of sessions.
type Store struct {
	pool *pgxpool.Pool
	q    *db.Queries
	opt  Options
	log  *slog.Logger
}

// New returns a store. Run removes blobs without a name.
func New(pool *pgxpool.Pool, opt Options) *Store {
	opt.Quota, opt.Files = cmp.Or(opt.Quota, Quota), cmp.Or(opt.Files, MaxFiles)
	if opt.Log == nil {
		opt.Log = slog.New(slog.DiscardHandler)
	}
	return &Store{pool: pool, q: db.New(replan.Pool{Pool: pool}), opt: opt, log: opt.Log}
}

// Claim is the right to write a session's folder.
type Claim struct {
	Workspace, Session uuid.UUID
	Epoch              int64 // epoch of the turn's lease: an older one saves nothing any more
}
