package inside

import (
	"errors"
	"io"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

func init() {
	if len(os.Args) < 2 || os.Args[0] != Path {
		return
	}
	switch os.Args[1] {
	case ReportArgument:
		writeReport(os.Args[2:])
		os.Exit(0)
	case StageArgument:
	default:
		return
	}
	err := stage() // it returns only after a failure
	_ = unix.Sendmsg(Control, append([]byte{Failed}, err.Error()...), nil, nil, unix.MSG_NOSIGNAL)
	os.Exit(1)
}

// stage becomes the command.
func stage() error {
	// The service may itself have inherited descriptors without the close-on-exec flag, and then
	// passed them on.
	if err := unix.CloseRange(Control, ^uint(0), unix.CLOSE_RANGE_CLOEXEC); err != nil {
		return failed("close inherited files", err)
	}
	job, err := receive()
	if err != nil {
		return failed("read the job", err)
	}
	// Process 1 is bubblewrap's and ends last: the holder of its descriptor detects the end of all
	// processes.
	process1, err := unix.PidfdOpen(1, 0)
	if err != nil {
		return failed("open process 1", err)
	}
	give := []int{process1}
	for _, kind := range job.Sockets {
		s, err := unix.Socket(unix.AF_INET, kind|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return failed("make a socket", err)
		}
		give = append(give, s)
	}
	for _, l := range job.Limits {
		if err := limit(l); err != nil {
			return failed("set resource limit "+strconv.Itoa(l.Resource), err)
		}
	}
	if err := bound(); err != nil {
		return failed("wait for process 1", err)
	}
	if err := unix.Sendmsg(Control, []byte{Ready}, unix.UnixRights(give...), nil, unix.MSG_NOSIGNAL); err != nil {
		return failed("hand out the sockets", err)
	}
	if n, err := unix.Read(Control, make([]byte, 1)); n != 1 {
		return failed("wait for the service", err)
	}
	return become(job)
}

func receive() (Job, error) {
	f := os.NewFile(JobFile, "job")
	defer f.Close()
	text, err := io.ReadAll(f)
	if err != nil {
		return Job{}, err
	}
	return decodeJob(string(text))
}

// limit limits this process and process 1, too: both belong to the same user, so the command may
// write into the memory of process 1 and would be free of limits there.
func limit(l Limit) error {
	rlimit := &unix.Rlimit{Cur: l.Soft, Max: l.Hard}
	return errors.Join(unix.Prlimit(1, l.Resource, rlimit, nil), unix.Prlimit(0, l.Resource, rlimit, nil))
}

// bound waits until process 1 is bound to the life of bubblewrap's first process, which dies with
// the service. It binds itself right before it installs its filter, which is visible. The service
// still lives after that, because it then sends the byte to continue.
func bound() error {
	for {
		text, err := os.ReadFile("/proc/1/status")
		if err != nil || strings.Contains(string(text), "\nSeccomp:\t2\n") {
			return err
		}
		time.Sleep(100 * time.Microsecond)
	}
}

// become finds a name without a slash in PATH, as a shell does.
func become(job Job) error {
	paths := []string{job.Argv[0]}
	if !strings.Contains(job.Argv[0], "/") {
		paths = nil
		for _, v := range job.Env {
			if list, ok := strings.CutPrefix(v, "PATH="); ok {
				for dir := range strings.SplitSeq(list, ":") {
					paths = append(paths, dir+"/"+job.Argv[0])
				}
			}
		}
	}
	err := error(syscall.ENOENT)
	for _, path := range paths {
		if err = syscall.Exec(path, job.Argv, job.Env); !errors.Is(err, syscall.ENOENT) {
			break
		}
	}
	return failed("start "+job.Argv[0], err)
}

// failed avoids the package fmt, because the initialisation of its dependencies takes time.
func failed(what string, err error) error {
	if err == nil {
		return errors.New(what + ": it is gone")
	}
	return errors.New(what + ": " + err.Error())
}
