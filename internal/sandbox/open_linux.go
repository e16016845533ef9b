package sandbox

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"syscall"
)

// Sandbox runs commands.
type Sandbox struct {
	bwrap      string
	executable string // ours, where the commands' user can read it
	credential *syscall.Credential
	scratch    *scratch
	system     []string
	filter     []byte
	limits     Limits
	direct     bool // commands may have a Direct
}

// Open tries a sandbox out and returns it. The error is an *Unavailable where commands
// cannot be contained.
func Open(ctx context.Context, cfg Config) (_ *Sandbox, err error) {
	s := &Sandbox{filter: filter(), limits: cfg.Limits.or(defaults), direct: cfg.Transparent}
	log := cmp.Or(cfg.Log, slog.New(slog.DiscardHandler))
	if os.Geteuid() == 0 {
		if cfg.UID <= 0 {
			return nil, rootWithoutUser
		}
		s.credential = &syscall.Credential{Uid: uint32(cfg.UID), Gid: uint32(cfg.UID)}
	}
	if s.system, err = system(cfg.Root); err != nil {
		return nil, err
	}
	if s.bwrap, err = findBwrap(ctx, cfg.Bwrap); err != nil {
		return nil, err
	}
	sweepOrphans()
	if s.scratch, err = newScratch(cfg.Dir, s.credential, log); err != nil {
		return nil, unwritable(err)
	}
	defer func() {
		if err != nil {
			_ = s.Close()
		}
	}()
	if !s.reachable(filepath.Dir(s.scratch.path)) {
		return nil, unreachable(cfg.UID, s.scratch.path)
	}
	if s.executable, err = s.own(); err != nil {
		return nil, fmt.Errorf("copy the executable for the sandbox: %w", err)
	}
	if err := s.probe(ctx); err != nil {
		return nil, err
	}
	log.Info("commands can be contained", "bwrap", s.bwrap, "dir", s.scratch.path)
	return s, nil
}

// Close removes what the sandbox has on disk, folders too. All runs have ended.
func (s *Sandbox) Close() error { return s.scratch.close() }

// own names the service's executable, or a copy that the commands' user can execute.
func (s *Sandbox) own() (string, error) {
	path, err := os.Executable()
	if err != nil || s.reachable(path) {
		return path, err
	}
	copied := filepath.Join(s.scratch.path, "init")
	if info, err := os.Stat(path); err == nil && info.Mode()&0o005 == 0o005 && os.Link(path, copied) == nil {
		return copied, nil
	}
	from, err := os.Open("/proc/self/exe")
	if err != nil {
		return "", err
	}
	defer from.Close()
	to, err := os.OpenFile(copied, os.O_CREATE|os.O_WRONLY|os.O_EXCL, 0o755)
	if err != nil {
		return "", err
	}
	defer to.Close()
	if _, err := io.Copy(to, from); err != nil {
		return "", err
	}
	if err := to.Chmod(0o755); err != nil { // whatever the umask says
		return "", err
	}
	return copied, to.Close()
}

// reachable reports whether the commands' user may pass to path and read it. It goes by
// the rights that everybody has.
func (s *Sandbox) reachable(path string) bool {
	if s.credential == nil {
		return true
	}
	path, err := filepath.EvalSymlinks(path)
	if err != nil {
		return false
	}
	need := os.FileMode(0o005)
	for {
		info, err := os.Stat(path)
		if err != nil || info.Mode()&need != need && !info.IsDir() || info.IsDir() && info.Mode()&0o001 == 0 {
			return false
		}
		parent := filepath.Dir(path)
		if parent == path {
			return true
		}
		path = parent
	}
}
