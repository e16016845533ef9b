// Package workdir owns the files of sessions: the folder in which a session's agent
// works, as it outlives the turn, the process and the machine. It is the only writer
// of its tables.
//
// It promises: the database holds the folder at its last complete save, whatever dies meanwhile; a
// worker without the lease saves nothing; stored bytes are not sent again, and unchanged files are
// not read again; no file is ever held in memory, and no transaction waits for one. Untrusted
// programs write the folder: no link in it is followed, no pipe is waited for, and nothing outside
// of it is ever read or written.
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
	// Quota is how many bytes the files of a session have together, where Options do
	// not say.
	Quota = 512 << 20
	// MaxFiles is how many names a session's folder has, where Options do not say.
	MaxFiles = 20_000
	// MaxFile is how large one file may be.
	MaxFile = 64 << 20
	// MaxPath is how long a path may be, in bytes.
	MaxPath = 4096
	// MaxDepth is how deep folders may be in each other.
	MaxDepth = 128
	// Attachments is a name in a folder that is not saved: there the agent sees the files that came
	// with messages.
	Attachments = "attachments"
)

// chunkSize is the size of a stored chunk. It cannot change: it is where the bytes
// of every stored file are.
const chunkSize = 256 << 10

// ErrFenced is returned if a newer claim has the folder, or the session is erased.
var ErrFenced = errors.New("the folder of the session is in newer hands")

// Options configure a Store. The zero value works.
type Options struct {
	Quota int64 // of a session's files together, in bytes; zero: the constant of that name
	Files int   // names in a folder; zero: MaxFiles
	// Give hands a folder that was just filled to whom it shall belong. It happens in
	// Restore, because a later change of owners would look like a change of every file.
	Give func(dir string) error
	// Progress receives the progress of a long Restore or Save; nil: not reported.
	Progress func(Progress)
	Log      *slog.Logger
}

// Store keeps the folders of sessions.
type Store struct {
	pool *pgxpool.Pool
	q    *db.Queries
	opt  Options
	log  *slog.Logger
}

// New makes a store. Run removes blobs that no folder names.
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
	Epoch              int64 // of the turn's lease: an older one saves nothing any more
}
