package devdb

import "syscall"

// dieWithParent lets the kernel send SIGINT, PostgreSQL's fast shutdown, when the thread that
// starts the process ends.
func dieWithParent(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGINT }
