package sandbox_test

import (
	"errors"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/parley-server/parley/internal/toolenv/sandbox"
)

// call is a system call that would have an effect, or fail in another way, without a filter.
type call struct {
	name string
	nr   uintptr
	args [6]uintptr
	want unix.Errno
}

var none = ^uintptr(0) // no descriptor, no pointer

var calls = []call{
	{"ptrace", unix.SYS_PTRACE, [6]uintptr{unix.PTRACE_TRACEME}, unix.EPERM},
	{"process_vm_readv", unix.SYS_PROCESS_VM_READV, [6]uintptr{1}, unix.EPERM},
	{"process_vm_writev", unix.SYS_PROCESS_VM_WRITEV, [6]uintptr{1}, unix.EPERM},
	{"pidfd_getfd", unix.SYS_PIDFD_GETFD, [6]uintptr{none}, unix.EPERM},
	{"kcmp", unix.SYS_KCMP, [6]uintptr{1, 1, none}, unix.EPERM},
	{"unshare nothing", unix.SYS_UNSHARE, [6]uintptr{0}, unix.EPERM},
	{"unshare users", unix.SYS_UNSHARE, [6]uintptr{unix.CLONE_NEWUSER}, unix.EPERM},
	{"setns", unix.SYS_SETNS, [6]uintptr{none}, unix.EPERM},
	{"clone users", unix.SYS_CLONE, [6]uintptr{unix.CLONE_NEWUSER | uintptr(unix.SIGCHLD)}, unix.EPERM},
	{"clone network", unix.SYS_CLONE, [6]uintptr{unix.CLONE_NEWNET | uintptr(unix.SIGCHLD)}, unix.EPERM},
	{"clone nonsense with users", unix.SYS_CLONE, [6]uintptr{unix.CLONE_NEWUSER | unix.CLONE_SIGHAND}, unix.EPERM},
	{"clone3", unix.SYS_CLONE3, [6]uintptr{none}, unix.ENOSYS},
	{"mount", unix.SYS_MOUNT, [6]uintptr{none, none, none}, unix.EPERM},
	{"umount2", unix.SYS_UMOUNT2, [6]uintptr{none, 1 << 30}, unix.EPERM},
	{"pivot_root", unix.SYS_PIVOT_ROOT, [6]uintptr{none, none}, unix.EPERM},
	{"chroot", unix.SYS_CHROOT, [6]uintptr{none}, unix.EPERM},
	{"open_tree", unix.SYS_OPEN_TREE, [6]uintptr{none, none}, unix.ENOSYS},
	{"fsopen", unix.SYS_FSOPEN, [6]uintptr{none}, unix.ENOSYS},
	{"mount_setattr", unix.SYS_MOUNT_SETATTR, [6]uintptr{none}, unix.ENOSYS},
	{"name_to_handle_at", unix.SYS_NAME_TO_HANDLE_AT, [6]uintptr{none}, unix.EPERM},
	{"open_by_handle_at", unix.SYS_OPEN_BY_HANDLE_AT, [6]uintptr{none, none}, unix.EPERM},
	{"io_uring_setup", unix.SYS_IO_URING_SETUP, [6]uintptr{1, none}, unix.EPERM},
	{"io_uring_enter", unix.SYS_IO_URING_ENTER, [6]uintptr{none}, unix.EPERM},
	{"io_uring_register", unix.SYS_IO_URING_REGISTER, [6]uintptr{none}, unix.EPERM},
	{"bpf", unix.SYS_BPF, [6]uintptr{none}, unix.EPERM},
	{"perf_event_open", unix.SYS_PERF_EVENT_OPEN, [6]uintptr{none}, unix.EPERM},
	{"userfaultfd", unix.SYS_USERFAULTFD, [6]uintptr{1 << 20}, unix.EPERM},
	{"fanotify_init", unix.SYS_FANOTIFY_INIT, [6]uintptr{unix.FAN_REPORT_FID}, unix.EPERM},
	{"keyctl", unix.SYS_KEYCTL, [6]uintptr{unix.KEYCTL_GET_KEYRING_ID, none - 2, 1}, unix.EPERM},
	{"add_key", unix.SYS_ADD_KEY, [6]uintptr{none}, unix.EPERM},
	{"request_key", unix.SYS_REQUEST_KEY, [6]uintptr{none}, unix.EPERM},
	{"get_mempolicy", unix.SYS_GET_MEMPOLICY, [6]uintptr{0, 0, 0, 0, 0}, unix.EPERM},
	{"finit_module", unix.SYS_FINIT_MODULE, [6]uintptr{none}, unix.EPERM},
	{"kexec_load", unix.SYS_KEXEC_LOAD, [6]uintptr{}, unix.EPERM},
	{"syslog", unix.SYS_SYSLOG, [6]uintptr{10}, unix.EPERM},
	{"quotactl", unix.SYS_QUOTACTL, [6]uintptr{}, unix.EPERM},
	{"shmget", unix.SYS_SHMGET, [6]uintptr{0, 1 << 20, 0o600}, unix.EPERM},
	{"semget", unix.SYS_SEMGET, [6]uintptr{0, 1, 0o600}, unix.EPERM},
	{"msgget", unix.SYS_MSGGET, [6]uintptr{0, 0o600}, unix.EPERM},
	{"memfd_create", unix.SYS_MEMFD_CREATE, [6]uintptr{none}, unix.ENOSYS},
	{"memfd_secret", unix.SYS_MEMFD_SECRET, [6]uintptr{none}, unix.ENOSYS},
	{"vmsplice", unix.SYS_VMSPLICE, [6]uintptr{none}, unix.ENOSYS},
	{"io_setup", unix.SYS_IO_SETUP, [6]uintptr{1, none}, unix.ENOSYS},
	{"inotify_init1", unix.SYS_INOTIFY_INIT1, [6]uintptr{none}, unix.ENOSYS},
	{"fallocate", unix.SYS_FALLOCATE, [6]uintptr{none}, unix.EOPNOTSUPP},
	{"type into a terminal", unix.SYS_IOCTL, [6]uintptr{none, unix.TIOCSTI}, unix.EPERM},
	{"type into a terminal, with high bits", unix.SYS_IOCTL, [6]uintptr{none, 1<<40 | unix.TIOCSTI}, unix.EPERM},
	{"paste into a terminal", unix.SYS_IOCTL, [6]uintptr{none, unix.TIOCLINUX}, unix.EPERM},
	{"socketpair of datagrams", unix.SYS_SOCKETPAIR, [6]uintptr{unix.AF_UNIX, unix.SOCK_DGRAM, 0, none}, unix.EPERM},
	{"socketpair of another kind", unix.SYS_SOCKETPAIR, [6]uintptr{unix.AF_TIPC, unix.SOCK_STREAM, 0, none}, unix.EPERM},
}

func tryCalls([]string) error {
	runtime.LockOSThread()
	for _, c := range calls {
		_, _, errno := syscall.RawSyscall6(c.nr, c.args[0], c.args[1], c.args[2], c.args[3], c.args[4], c.args[5])
		if errno == 0 {
			tried(c.name, nil)
			continue
		}
		tried(c.name, errno)
	}
	return nil
}

func TestDangerousCallsAreRefused(t *testing.T) {
	t.Parallel()
	s := open(t, sandbox.Config{})
	ends := attempt(t, s, with("calls"))
	for _, c := range calls {
		if ends[c.name] != c.want.Error() {
			t.Errorf("%s: %s, want: %s", c.name, ends[c.name], c.want)
		}
	}
}

// sockets lists the sockets that must not be made, by domain, type and protocol.
var sockets = map[string][3]int{
	"unix":                 {unix.AF_UNIX, unix.SOCK_STREAM, 0},
	"unix datagrams":       {unix.AF_UNIX, unix.SOCK_DGRAM, 0},
	"unix, with high bits": {1<<40 | unix.AF_UNIX, unix.SOCK_STREAM, 0},
	"unix, non-blocking":   {unix.AF_UNIX, unix.SOCK_STREAM | unix.SOCK_NONBLOCK | unix.SOCK_CLOEXEC, 0},
	"netlink":              {unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_ROUTE},
	"packet":               {unix.AF_PACKET, unix.SOCK_RAW, 0x0300},
	"vsock":                {unix.AF_VSOCK, unix.SOCK_STREAM, 0},
	"vsock datagrams":      {unix.AF_VSOCK, unix.SOCK_DGRAM, 0},
	"alg":                  {unix.AF_ALG, unix.SOCK_SEQPACKET, 0},
	"raw":                  {unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_ICMP},
	"raw 6":                {unix.AF_INET6, unix.SOCK_RAW, unix.IPPROTO_ICMPV6},
	"raw, non-blocking":    {unix.AF_INET, unix.SOCK_RAW | unix.SOCK_NONBLOCK, unix.IPPROTO_TCP},
	"ping":                 {unix.AF_INET, unix.SOCK_DGRAM, unix.IPPROTO_ICMP},
	"mptcp":                {unix.AF_INET, unix.SOCK_STREAM, unix.IPPROTO_MPTCP},
	"udplite":              {unix.AF_INET, unix.SOCK_DGRAM, unix.IPPROTO_UDPLITE},
	"sctp":                 {unix.AF_INET, unix.SOCK_SEQPACKET, unix.IPPROTO_SCTP},
	"bluetooth":            {unix.AF_BLUETOOTH, unix.SOCK_RAW, 0},
	"can":                  {unix.AF_CAN, unix.SOCK_RAW, 1},
	"sequenced":            {unix.AF_INET, unix.SOCK_SEQPACKET, 0},
	"xdp":                  {unix.AF_XDP, unix.SOCK_RAW, 0},
	"key":                  {unix.AF_KEY, unix.SOCK_RAW, 2},
}

// usual are sockets that programs need.
var usual = []string{"tcp", "tcp 6", "udp", "a pair", "a pair of packets"}

func trySockets([]string) error {
	for name, s := range sockets {
		_, _, errno := syscall.Syscall(unix.SYS_SOCKET, uintptr(s[0]), uintptr(s[1]), uintptr(s[2]))
		if errno == 0 {
			tried(name, nil)
			continue
		}
		tried(name, errno)
	}
	_, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_NONBLOCK, unix.IPPROTO_TCP)
	tried("tcp", err)
	_, err = unix.Socket(unix.AF_INET6, unix.SOCK_STREAM, 0)
	if errors.Is(err, unix.EAFNOSUPPORT) { // the machine does not support the family
		err = nil
	}
	tried("tcp 6", err)
	_, err = unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	tried("udp", err)
	_, err = unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	tried("a pair", err)
	_, err = unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET, 0)
	tried("a pair of packets", err)
	return nil
}

func TestOnlyInternetSocketsCanBeMade(t *testing.T) {
	t.Parallel()
	s := open(t, sandbox.Config{})
	for name, end := range attempt(t, s, with("sockets")) {
		if slices.Contains(usual, name) {
			if end != "done" {
				t.Errorf("%s: %s", name, end)
			}
		} else if end != unix.EPERM.Error() {
			t.Errorf("%s: %s", name, end)
		}
	}
}

// TestForeignCallsKill uses system call tables whose numbers the filter does not cover.
func TestForeignCallsKill(t *testing.T) {
	t.Parallel()
	if runtime.GOARCH != "amd64" {
		t.Skip("only amd64 has more than one system call table")
	}
	s := open(t, sandbox.Config{})
	for _, set := range []string{"x32", "i386"} {
		r, out := run(t, s, sandbox.Command{Argv: with("foreign", set)})
		if r.Exit == 0 || strings.Contains(out, "done") {
			t.Errorf("%s: %+v, %s", set, r, out)
		}
	}
}

// tryForeign requests the process id.
func tryForeign(set []string) error {
	if set[0] == "x32" {
		if _, _, errno := syscall.RawSyscall(0x40000000|unix.SYS_GETPID, 0, 0, 0); errno != 0 {
			return errno // the kernel does not support the set
		}
		tried("x32", nil)
		return nil
	}
	code := []byte{0xb8, 20, 0, 0, 0, 0xcd, 0x80, 0xc3} // mov $20, %eax; int $0x80; ret
	page, err := unix.Mmap(-1, 0, 4096, unix.PROT_READ|unix.PROT_WRITE|unix.PROT_EXEC, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return err
	}
	copy(page, code)
	entry := unsafe.Pointer(&page[0])
	function := &entry
	(*(*func())(unsafe.Pointer(&function)))()
	tried("i386", nil)
	return nil
}
