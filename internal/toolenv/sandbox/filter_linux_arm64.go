package sandbox

import "golang.org/x/sys/unix"

const nativeArch = unix.AUDIT_ARCH_AARCH64

// deniedHere are the calls to be denied that only this architecture has.
var deniedHere = []uint32{unix.SYS_KEXEC_FILE_LOAD}

// unknownHere are the calls to be unknown that only this architecture has.
var unknownHere []uint32

// foreign has nothing to do: the architecture has one set of system calls.
func (p *program) foreign() {}
