package sandbox

import (
	"cmp"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"sync"

	"github.com/parley-server/parley/internal/toolenv/scratch"
)

// Sandbox runs commands.
type Sandbox struct {
	bwrap  string
	users  *users // users of the commands; nil: the user of the service
	dir    string // parent of this process's directory
	log    *slog.Logger
	system []string
	filter []byte
	limits Limits
	direct bool // commands may have a Direct

	cgroups   *cgroups     // nil: not available
	unlimited *Unavailable // why cgroups is nil

	mu         sync.Mutex
	scratch    *scratch.Dir
	executable string // our executable, readable by the commands' user; empty: not made yet
}

// Open tests a sandbox and returns it. The error is an *Unavailable if commands cannot be
// contained.
func Open(ctx context.Context, cfg Config) (_ *Sandbox, err error) {
	s := &Sandbox{filter: seccompFilter(), limits: cfg.Limits.withDefaults(defaults), direct: cfg.Transparent}
	s.log = cmp.Or(cfg.Log, slog.New(slog.DiscardHandler))
	if s.dir, err = filepath.Abs(cmp.Or(cfg.Dir, os.TempDir())); err != nil {
		return nil, err
	}
	if os.Geteuid() == 0 {
		if cfg.Users.Len() == 0 {
			return nil, rootWithoutUser
		}
		s.users = &users{UserRange: cfg.Users}
	}
	if s.system, err = systemArguments(cfg.Root); err != nil {
		return nil, err
	}
	if s.bwrap, err = findBwrap(ctx, cfg.Bwrap); err != nil {
		return nil, err
	}
	sweepOrphans()
	if s.cgroups, err = openCgroups(s.bwrap); err != nil {
		s.cgroups, s.unlimited = nil, unavailableCgroups(err)
	}
	defer func() {
		if err != nil {
			_ = s.Close()
		}
	}()
	dir, _, err := s.choosePaths()
	if err != nil {
		return nil, err
	}
	if err := s.probeFeatures(ctx); err != nil {
		return nil, err
	}
	s.log.Info("commands can be contained", "bwrap", s.bwrap, "dir", dir, "limited", s.unlimited == nil)
	return s, nil
}

// Limited returns nil if the kernel limits the memory and the processes of a command as a whole,
// with cgroup v2. Otherwise it returns an *Unavailable: the service only watches them.
func (s *Sandbox) Limited() error {
	if s.unlimited != nil {
		return s.unlimited
	}
	return nil
}

// Close removes the sandbox's files on disk, including folders. All runs must have ended.
func (s *Sandbox) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.scratch == nil {
		return nil
	}
	return s.scratch.Close()
}
