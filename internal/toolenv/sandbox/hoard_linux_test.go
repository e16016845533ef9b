package sandbox_test

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// hoards occupy memory that no list of mapped pages or directory shows; some exceed the limits of
// the test.
var hoards = map[string]func() error{
	"sockets": hoardSockets,
	"shared":  hoardShared,
	"tables":  hoardTables,
	"files":   hoardFiles,
}

// hoard occupies memory, and keeps running.
func hoard(args []string) error {
	if err := hoards[args[0]](); err != nil {
		return err
	}
	select {}
}

// hoardSockets fills pairs of sockets without reading from them.
func hoardSockets() error {
	text := make([]byte, 32<<10)
	for range 450 {
		pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_NONBLOCK, 0)
		if err != nil {
			return fmt.Errorf("make a pair: %w", err)
		}
		for _, fd := range pair {
			for err = nil; err == nil; {
				_, err = unix.Write(fd, text)
			}
			if !errors.Is(err, unix.EAGAIN) {
				return fmt.Errorf("fill a pair: %w", err)
			}
		}
	}
	return nil
}

// hoardShared writes shared memory and then drops its pages from the resident set.
func hoardShared() error {
	for range 16 {
		memory, err := unix.Mmap(-1, 0, 64*mib, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_ANON)
		if err != nil {
			return err
		}
		for i := 0; i < len(memory); i += 4096 {
			memory[i] = 1
		}
		if err := unix.Madvise(memory, unix.MADV_DONTNEED); err != nil {
			return err
		}
	}
	return nil
}

// hoardTables reads one byte per 2 MiB, for each of which the kernel needs a page table.
func hoardTables() error {
	sum := byte(0)
	for range 16 {
		memory, err := unix.Mmap(-1, 0, 32<<30, unix.PROT_READ, unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_NORESERVE)
		if err != nil {
			return err
		}
		if err := unix.Madvise(memory, unix.MADV_NOHUGEPAGE); err != nil {
			return err
		}
		for i := 0; i < len(memory); i += 2 * mib {
			sum += memory[i]
		}
	}
	if sum != 0 {
		return errors.New("new memory is not empty")
	}
	return nil
}

// hoardFiles maps files that it then deletes and closes.
func hoardFiles() error {
	for range 6 {
		f, err := os.Create("hoarded")
		if err != nil {
			return err
		}
		if _, err := f.Write(make([]byte, 5*mib)); err != nil {
			return err
		}
		if _, err := unix.Mmap(int(f.Fd()), 0, 5*mib, unix.PROT_READ, unix.MAP_SHARED); err != nil {
			return err
		}
		if err := errors.Join(os.Remove("hoarded"), f.Close()); err != nil {
			return err
		}
	}
	return nil
}
