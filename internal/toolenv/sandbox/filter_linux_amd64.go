package sandbox

import "golang.org/x/sys/unix"

const nativeArch = unix.AUDIT_ARCH_X86_64

// deniedHere are denied calls that exist only on this architecture.
var deniedHere = []uint32{
	unix.SYS_IOPERM, unix.SYS_IOPL, unix.SYS_MODIFY_LDT, unix.SYS_KEXEC_FILE_LOAD, unix.SYS_USELIB, unix.SYS__SYSCTL,
	unix.SYS_USTAT, unix.SYS_SYSFS, unix.SYS_CREATE_MODULE, unix.SYS_GET_KERNEL_SYMS, unix.SYS_QUERY_MODULE,
}

// unknownHere are unknown calls that exist only on this architecture.
var unknownHere = []uint32{unix.SYS_INOTIFY_INIT}

// foreign rejects the second system call table of the architecture, x32. Its numbers have an
// additional bit, so the other checks would not match them.
func (p *program) foreign() {
	const x32 = 0x40000000
	p.add(unix.BPF_JMP|unix.BPF_JGE|unix.BPF_K, x32, 0, 1)
	p.end(unix.SECCOMP_RET_KILL_PROCESS)
}
