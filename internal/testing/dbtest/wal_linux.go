package dbtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-server/parley/internal/testing/need"
)

// WALDisk is a small disk for a server's write-ahead log.
type WALDisk struct {
	s   *Server
	dir string
}

// WALOnDisk restarts the server with its write-ahead log on a disk of so many megabytes. It skips
// the test if no disk can be mounted, unless it runs as root and no test may be skipped.
func (s *Server) WALOnDisk(megabytes int) *WALDisk {
	s.t.Helper()
	d := &WALDisk{s: s, dir: filepath.Join(s.running.Dir, "waldisk")}
	if err := os.Mkdir(d.dir, 0o755); err != nil {
		s.t.Fatalf("dbtest: %v", err)
	}
	if err := syscall.Mount("tmpfs", d.dir, "tmpfs", 0, fmt.Sprintf("mode=0755,size=%dm", megabytes)); err != nil {
		if os.Getuid() == 0 && need.All() && !errors.Is(err, syscall.EPERM) {
			s.t.Fatalf("dbtest: mount a disk: %v", err)
		}
		s.t.Skipf("dbtest: cannot mount a disk: %v", err)
	}
	s.t.Cleanup(func() {
		s.Stop()
		if err := syscall.Unmount(d.dir, syscall.MNT_DETACH); err != nil {
			s.t.Errorf("dbtest: %v", err)
		}
	})
	s.Stop()
	wal := filepath.Join(s.Data(), "pg_wal")
	for _, args := range [][]string{{"cp", "-a", wal, d.dir}, {"rm", "-r", wal}, {"ln", "-s", filepath.Join(d.dir, "pg_wal"), wal}} {
		if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
			s.t.Fatalf("dbtest: %s: %v: %s", strings.Join(args, " "), err, out)
		}
	}
	s.Start()
	return d
}

// Fill fills the disk, and lets the server write until it needs more. PostgreSQL then stops with a
// PANIC, and restarts for as long as it can recycle old files of its log.
func (d *WALDisk) Fill() {
	d.s.t.Helper()
	filler, err := os.Create(d.filler())
	if err != nil {
		d.s.t.Fatalf("dbtest: %v", err)
	}
	defer filler.Close()
	for block := make([]byte, 64<<10); err == nil; {
		_, err = filler.Write(block)
	}
	if !errors.Is(err, syscall.ENOSPC) {
		d.s.t.Fatalf("dbtest: fill a disk: %v", err)
	}
	ctx, cancel := context.WithTimeout(d.s.t.Context(), time.Minute)
	defer cancel()
	conn, err := pgx.Connect(ctx, d.s.Admin())
	if err == nil { // otherwise another client needed more first
		defer conn.Close(ctx)
	}
	for err == nil {
		_, err = conn.Exec(ctx, "SELECT pg_logical_emit_message(true, 'dbtest', repeat('x', 1000000))")
	}
	if ctx.Err() != nil {
		d.s.t.Fatalf("dbtest: the disk is full and the server writes: %v", err)
	}
}

// Free frees the space, and restarts the server as an administrator does.
func (d *WALDisk) Free() {
	d.s.t.Helper()
	if err := os.Remove(d.filler()); err != nil {
		d.s.t.Fatalf("dbtest: %v", err)
	}
	d.s.Crash()
	d.s.Start()
}

func (d *WALDisk) filler() string { return filepath.Join(d.dir, "filler") }
