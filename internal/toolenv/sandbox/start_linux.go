package sandbox

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/parley-server/parley/internal/toolenv/sandbox/inside"
)

// process is bubblewrap and all its descendants.
type process struct {
	cmd     *exec.Cmd
	control *net.UnixConn
	output  *os.File
	group   *cgroup
	ended   chan struct{} // bubblewrap's first process ended

	mu       sync.Mutex
	reaped   bool
	process1 *os.File // first process of the namespace, which ends last; nil: not known yet
	killed   bool
	cause    error // why it was killed: a limit, or what Run returns
}

// startProcess starts bubblewrap. Every descriptor that it needs is passed on and then closed here.
func (s *Sandbox) startProcess(c Command, l Limits, as *syscall.Credential) (p *process, err error) {
	var passed []*os.File
	defer func() {
		for _, f := range passed {
			f.Close()
		}
	}()
	pass := func(f *os.File) int {
		passed = append(passed, f)
		return inside.Control + len(passed) - 1
	}

	ours, theirs, err := newSocketPair()
	if err != nil {
		return nil, fmt.Errorf("make a socket: %w", err)
	}
	defer func() {
		if err != nil {
			ours.Close()
		}
	}()
	pass(theirs)

	file := func(text []byte) (int, error) {
		f, err := memoryFile(text)
		if err != nil {
			return 0, err
		}
		return pass(f), nil
	}
	job, err := newJob(c, l).Encode()
	if err != nil {
		return nil, err
	}
	if _, err := file(job); err != nil {
		return nil, err
	}
	_, executable, err := s.choosePaths()
	if err != nil {
		return nil, err
	}
	args, err := s.bwrapArguments(c, l, executable, file)
	if err != nil {
		return nil, err
	}
	argsFD, err := file([]byte(strings.Join(args, "\x00") + "\x00"))
	if err != nil {
		return nil, err
	}
	output, stdout, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer stdout.Close()

	// The arguments are passed in a file, so that a list of the host's processes does not show
	// them.
	cmd := exec.Command(s.bwrap, "--args", strconv.Itoa(argsFD), "--", inside.Path, inside.StageArgument)
	cmd.Env = []string{} // empty, also for bubblewrap's own processes
	cmd.Dir = "/"
	cmd.Stdout, cmd.Stderr = stdout, stdout
	cmd.ExtraFiles = passed
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL, Credential: as}
	p = &process{cmd: cmd, control: ours, output: output, ended: make(chan struct{})}
	if s.cgroups != nil {
		if p.group, err = s.cgroups.createGroup(l); err != nil {
			output.Close()
			return nil, err
		}
		cmd.SysProcAttr.UseCgroupFD, cmd.SysProcAttr.CgroupFD = true, int(p.group.dir.Fd())
	}
	if err := p.startProcess(); err != nil {
		output.Close()
		return nil, errors.Join(fmt.Errorf("start bubblewrap: %w", err), p.group.removeGroup())
	}
	return p, nil
}

// startProcess starts the process on a thread that stays until it ends: the kernel kills the
// process when the thread that started it ends, not when the service does.
func (p *process) startProcess() error {
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := p.cmd.Start()
		started <- err
		if err != nil {
			return
		}
		// After it is reaped, its number may belong to another process, so it must not be killed
		// then.
		for unix.Waitid(unix.P_PID, p.cmd.Process.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil) == unix.EINTR {
		}
		p.mu.Lock()
		p.reaped = true
		p.mu.Unlock()
		_ = p.cmd.Wait() // its exit code is in ProcessState
		close(p.ended)
	}()
	return <-started
}

// killAll kills all its processes. The first cause counts; nil is not a cause.
func (p *process) killAll(cause error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cause == nil {
		p.cause = cause
	}
	p.destroyLocked()
}

// destroyLocked requires the lock. The descendants of bubblewrap's first process die with it.
func (p *process) destroyLocked() {
	p.killed = true
	if !p.reaped {
		_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL)
	}
	if p.process1 != nil {
		_ = unix.PidfdSendSignal(int(p.process1.Fd()), unix.SIGKILL, nil, 0)
	}
	p.group.killGroup()
	_ = p.control.CloseRead() // a second stage that starts now fails
}

// waitForEnd waits until all its processes have ended.
func (p *process) waitForEnd() {
	<-p.ended
	p.mu.Lock()
	defer p.mu.Unlock()
	p.destroyLocked() // processes that the command left behind
	if p.process1 == nil {
		return
	}
	fd := p.process1.Fd()
	for {
		if _, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, -1); err != unix.EINTR {
			break
		}
	}
	// The host's first process reaps it, which is this one in many containers.
	_ = unix.Waitid(unix.P_PIDFD, int(fd), nil, unix.WEXITED|unix.WNOHANG, nil)
	p.process1.Close()
	p.process1 = nil
}
