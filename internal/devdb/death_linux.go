package devdb

import "syscall"

// dieWithParent asks the kernel to send SIGINT, PostgreSQL's fast shutdown, when
// the thread that starts the process ends.
func dieWithParent(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGINT }
