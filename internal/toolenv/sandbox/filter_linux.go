package sandbox

import (
	"encoding/binary"

	"golang.org/x/sys/unix"
)

// seccompFilter returns the program that the kernel runs at every system call of a command, in
// bubblewrap's input format: calls that it does not reject are allowed.
func seccompFilter() []byte {
	var p program
	p.load(archOffset)
	p.unless(nativeArch, unix.SECCOMP_RET_KILL_PROCESS)
	p.load(numberOffset)
	p.foreign()
	for _, nr := range append(denied, deniedHere...) {
		p.when(nr, refuseWith(unix.EPERM))
	}
	for _, nr := range append(unknown, unknownHere...) {
		p.when(nr, refuseWith(unix.ENOSYS))
	}
	// No resource limit counts allocated blocks: one call can fill the whole disk. Programs write
	// the blocks themselves if the file system cannot allocate.
	p.when(unix.SYS_FALLOCATE, refuseWith(unix.EOPNOTSUPP))
	p.refuseValues(unix.SYS_IOCTL, 1, unix.EOPNOTSUPP, allocations...)
	// Unix, netlink, packet, vsock and raw sockets are rejected, and protocols whose module the
	// kernel would load.
	p.allowOnly(unix.SYS_SOCKET, ^uint32(0), 0, unix.AF_INET, unix.AF_INET6)
	p.allowOnly(unix.SYS_SOCKET, typeMask, 1, unix.SOCK_STREAM, unix.SOCK_DGRAM)
	p.allowOnly(unix.SYS_SOCKET, ^uint32(0), 2, 0, unix.IPPROTO_TCP, unix.IPPROTO_UDP)
	// A pair of unix sockets cannot reach other processes, unless it sends datagrams, which may be
	// addressed.
	p.allowOnly(unix.SYS_SOCKETPAIR, ^uint32(0), 0, unix.AF_UNIX)
	p.allowOnly(unix.SYS_SOCKETPAIR, typeMask, 1, unix.SOCK_STREAM, unix.SOCK_SEQPACKET)
	p.allowOnly(unix.SYS_CLONE, newNamespaces, 0, 0)
	// Input to a terminal that is shared with other processes.
	p.refuseValues(unix.SYS_IOCTL, 1, unix.EPERM, unix.TIOCSTI, unix.TIOCLINUX)
	p.end(unix.SECCOMP_RET_ALLOW)
	return p.bytes()
}

const (
	numberOffset = 0  // offset of the system call's number in struct seccomp_data
	archOffset   = 4  // offset of the architecture
	argsOffset   = 16 // offset of the arguments, 8 bytes each; the low half comes first

	typeMask      = ^uint32(unix.SOCK_NONBLOCK | unix.SOCK_CLOEXEC)
	newNamespaces = unix.CLONE_NEWNS | unix.CLONE_NEWCGROUP | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC |
		unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNET
)

// allocations are the ioctls of every file system with the effect of fallocate, and the one that
// sets how much a write allocates.
var allocations = []uint32{
	0x40305828, 0x4030582a, // FS_IOC_RESVSP, FS_IOC_RESVSP64
	0x40305839, // FS_IOC_ZERO_RANGE
	0x401c5820, // FS_IOC_FSSETXATTR
}

func refuseWith(errno unix.Errno) uint32 { return unix.SECCOMP_RET_ERRNO | uint32(errno) }

// program consists of blocks that begin and end with the system call's number in the accumulator,
// so that their order does not matter.
type program []unix.SockFilter

func (p *program) add(code int, k uint32, yes, no uint8) {
	*p = append(*p, unix.SockFilter{Code: uint16(code), Jt: yes, Jf: no, K: k})
}

func (p *program) load(offset uint32)      { p.add(unix.BPF_LD|unix.BPF_W|unix.BPF_ABS, offset, 0, 0) }
func (p *program) equal(k uint32, n uint8) { p.add(unix.BPF_JMP|unix.BPF_JEQ|unix.BPF_K, k, n, 0) }
func (p *program) end(action uint32)       { p.add(unix.BPF_RET|unix.BPF_K, action, 0, 0) }
func (p *program) skip(k uint32, n uint8)  { p.add(unix.BPF_JMP|unix.BPF_JEQ|unix.BPF_K, k, 0, n) }

// unless ends with the action if the accumulator is not k.
func (p *program) unless(k, action uint32) {
	p.equal(k, 1)
	p.end(action)
}

// when ends with the action if the accumulator is k.
func (p *program) when(k, action uint32) {
	p.skip(k, 1)
	p.end(action)
}

// allowOnly rejects a system call unless its argument is one of the values. The kernel also reads
// only the low half of these arguments.
func (p *program) allowOnly(nr, mask uint32, arg uint32, values ...uint32) {
	n := uint8(len(values))
	p.skip(nr, n+4)
	p.load(argsOffset + 8*arg)
	p.add(unix.BPF_ALU|unix.BPF_AND|unix.BPF_K, mask, 0, 0)
	for i, v := range values {
		p.equal(v, n-uint8(i)) // over the rest and the refusal
	}
	p.end(refuseWith(unix.EPERM))
	p.load(numberOffset)
}

// refuseValues rejects a system call if its argument is one of the values.
func (p *program) refuseValues(nr uint32, arg uint32, errno unix.Errno, values ...uint32) {
	n := uint8(len(values))
	p.skip(nr, 2*n+2)
	p.load(argsOffset + 8*arg)
	for _, v := range values {
		p.when(v, refuseWith(errno))
	}
	p.load(numberOffset)
}

func (p program) bytes() []byte {
	b := make([]byte, 0, len(p)*unix.SizeofSockFilter)
	for _, f := range p {
		b = binary.NativeEndian.AppendUint16(b, f.Code)
		b = append(b, f.Jt, f.Jf)
		b = binary.NativeEndian.AppendUint32(b, f.K)
	}
	return b
}
