//go:build unix

package devdb

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"
)

// joinServer reports whether a guard runs a server here, once the server is ready.
func (s *Server) joinServer(ctx context.Context) (bool, error) {
	guard, err := openLock(s.place.guard)
	if err != nil {
		return false, err
	}
	defer guard.close()
	joined := false
	err = pollUntil(ctx, func() (bool, error) {
		free, err := guard.tryLock(exclusive)
		if free || err != nil {
			return true, err
		}
		text, err := os.ReadFile(s.place.guard)
		if err != nil || json.Unmarshal(text, &s.task) != nil {
			return false, err // not written yet
		}
		s.at, err = readPidfile(s.place.data)
		joined = err == nil && s.at.isReady() && isAlive(s.at.pid)
		return joined, nil // no file yet, or not anymore: the guard is starting or stopping PostgreSQL
	})
	s.Version = s.task.Version
	return joined, err
}

// launchGuard starts a guard and waits for its report.
func (s *Server) launchGuard(ctx context.Context, opts Options) error {
	p := s.place
	major, err := p.majorVersion()
	if err != nil {
		return err
	}
	prog, err := providePrograms(ctx, p, major, opts)
	if err != nil {
		return err
	}
	if major == 0 {
		opts.Progress("making a data directory with PostgreSQL " + prog.version)
		if err := p.createCluster(prog, opts.Disposable); err != nil {
			return err
		}
	}
	sockets, err := p.socketDir()
	if err != nil {
		return err
	}
	orphan, err := p.findOrphan(ctx)
	if err != nil {
		return err
	}
	s.task = task{
		Dir: p.dir, UID: p.as.uid, GID: p.as.gid, Drop: p.as.drop,
		Bin: prog.dir, Version: prog.version, Args: serverArguments(p.data, sockets, opts),
		Linger: opts.Linger, Adopt: orphan,
	}
	s.Joined = orphan != 0
	slow := time.AfterFunc(5*time.Second, func() { opts.Progress("PostgreSQL is still starting, perhaps recovering; see " + p.log) })
	defer slow.Stop()
	if err := s.spawnGuard(ctx); err != nil {
		return err
	}
	s.Version = prog.version
	s.at, err = readPidfile(p.data)
	return err
}

// serverArguments returns PostgreSQL's arguments. They are not written into its configuration file,
// so that a newer binary does not have to edit the file of an older one.
func serverArguments(data, sockets string, opts Options) []string {
	set := map[string]string{
		"listen_addresses":        "",
		"unix_socket_directories": sockets,
		"unix_socket_permissions": "0700",
		"port":                    "5432",
		"max_connections":         "200",
		"shared_buffers":          "128MB",
		"timezone":                "UTC",
		"log_timezone":            "UTC",
		"logging_collector":       "off",
	}
	if opts.Disposable {
		set["fsync"], set["full_page_writes"] = "off", "off" // commits still survive kill -9
	}
	maps.Copy(set, opts.Settings)
	args := []string{"-D", data}
	for _, key := range slices.Sorted(maps.Keys(set)) {
		args = append(args, "-c", key+"="+set[key])
	}
	return args
}

// spawnGuard runs this binary again as the guard, in a session of its own, so that Ctrl-C reaches
// this process and not PostgreSQL, and without open files of this process.
func (s *Server) spawnGuard(ctx context.Context) error {
	text, err := json.Marshal(s.task)
	if err != nil {
		return err
	}
	self := "/proc/self/exe" // works after a rebuild has replaced the file
	if runtime.GOOS != "linux" {
		if self, err = os.Executable(); err != nil {
			return err
		}
	}
	logFile, err := openLog(s.place.log)
	if err != nil {
		return err
	}
	defer logFile.Close()
	answer, write, err := os.Pipe()
	if err != nil {
		return err
	}
	defer answer.Close()

	cmd := exec.Command(self)
	cmd.Args = []string{guardName, string(text)}
	cmd.Dir = "/"
	account{}.applyTo(cmd)
	cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = logFile, logFile, []*os.File{write}
	cmd.SysProcAttr.Setsid = true
	err = cmd.Start()
	write.Close()
	if err != nil {
		return fmt.Errorf("start the guard: %w", err)
	}
	s.guard = cmd

	stop := context.AfterFunc(ctx, func() { answer.Close() })
	defer stop()
	word, err := bufio.NewReader(answer).ReadString('\n')
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, io.EOF) && word == "":
		return fmt.Errorf("the guard died; see %s", s.place.log)
	case strings.TrimSpace(word) != "ready":
		return fmt.Errorf("%s; see %s", strings.TrimSpace(word), s.place.log)
	}
	return nil
}

// awaitGuardEnd waits for the end of the guard, unless another process keeps the server.
func (s *Server) awaitGuardEnd(ctx context.Context) error {
	guard, err := openLock(s.place.guard)
	if err != nil {
		return err
	}
	defer guard.close()
	peers, err := openLock(s.place.peers)
	if err != nil {
		return err
	}
	defer peers.close()
	ended := false
	err = pollUntil(ctx, func() (bool, error) {
		if ended, err = guard.tryLock(exclusive); ended || err != nil {
			return true, err
		}
		free, err := peers.tryLock(exclusive)
		peers.unlock()
		return !free, err
	})
	if err != nil {
		return fmt.Errorf("wait for PostgreSQL's shutdown: %w", err)
	}
	if ended && s.guard != nil {
		s.guard.Wait()
	}
	return nil
}

func isAlive(pid int) bool {
	err := syscall.Kill(pid, 0)
	return err == nil || errors.Is(err, syscall.EPERM)
}
