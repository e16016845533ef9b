package sandbox_test

import (
	"fmt"
	"os"
	"strconv"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/parley-server/parley/internal/toolenv/sandbox"
)

// allocations are ways to reserve blocks without writing them.
var allocations = map[string]func(fd int, size int64) error{
	"fallocate": func(fd int, size int64) error {
		return unix.Fallocate(fd, unix.FALLOC_FL_KEEP_SIZE, 0, size)
	},
	"FS_IOC_RESVSP":     func(fd int, size int64) error { return reserve(fd, 0x40305828, size) },
	"FS_IOC_RESVSP64":   func(fd int, size int64) error { return reserve(fd, 0x4030582a, size) },
	"FS_IOC_ZERO_RANGE": func(fd int, size int64) error { return reserve(fd, 0x40305839, size) },
}

// reserve passes a struct space_resv to an ioctl.
func reserve(fd int, request uintptr, size int64) error {
	r := struct {
		kind, whence int16
		start, size  int64
		sysid        int32
		pid          uint32
		_            [4]int32
	}{size: size}
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), request, uintptr(unsafe.Pointer(&r))); errno != 0 {
		return errno
	}
	return nil
}

// tryAllocate reserves blocks for a file without a name.
func tryAllocate(args []string) error {
	n, err := strconv.ParseInt(args[0], 10, 64)
	if err != nil {
		return err
	}
	for name, allocate := range allocations {
		f, err := os.CreateTemp(".", "")
		if err != nil {
			return err
		}
		if err := os.Remove(f.Name()); err != nil {
			return err
		}
		err = allocate(int(f.Fd()), n)
		var stat unix.Stat_t
		if statErr := unix.Fstat(int(f.Fd()), &stat); statErr == nil && stat.Blocks > 0 {
			err = fmt.Errorf("%d bytes were taken", stat.Blocks*512)
		}
		tried(name, err)
		f.Close()
	}
	return nil
}

// TestBlocksAreWrittenNotReserved reserves more than the size limit of a file.
func TestBlocksAreWrittenNotReserved(t *testing.T) {
	t.Parallel()
	s := open(t, sandbox.Config{Limits: sandbox.Limits{File: mib}})
	for name, end := range attempt(t, s, with("allocate", strconv.Itoa(8*mib))) {
		if end != unix.EOPNOTSUPP.Error() {
			t.Errorf("%s: %s", name, end)
		}
	}
}
