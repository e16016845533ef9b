package sandbox

import "golang.org/x/sys/unix"

const nativeArch = unix.AUDIT_ARCH_AARCH64

// deniedHere are denied calls that exist only on this architecture.
var deniedHere = []uint32{unix.SYS_KEXEC_FILE_LOAD}

// unknownHere are unknown calls that exist only on this architecture.
var unknownHere []uint32

// foreign does nothing: the architecture has one system call table.
func (p *program) foreign() {}
