package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"github.com/parley-server/parley/internal/toolenv/sandbox/inside"
)

const (
	workspace    = "/workspace"
	certificates = "/etc/ssl/certs/ca-certificates.crt"
)

// small are files that every command needs.
var small = []struct{ path, text string }{
	{"/etc/passwd",
		"root:x:0:0:root:/:/bin/false\nsandbox:x:1000:1000:sandbox:/workspace:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n"},
	{"/etc/group", "root:x:0:\nsandbox:x:1000:\nnogroup:x:65534:\n"},
	{"/etc/hosts", "127.0.0.1 localhost sandbox\n"},
	{"/etc/nsswitch.conf", "passwd: files\ngroup: files\nhosts: files dns\n"},
	{"/etc/resolv.conf", "nameserver 127.0.0.1\noptions timeout:1 attempts:1\n"},
}

// systemArguments binds the programs and libraries of root, or of the host if that is empty.
func systemArguments(root string) (args []string, err error) {
	top := []string{"usr", "bin", "sbin", "lib", "lib32", "lib64", "libx32"}
	if root == "" {
		root = "/"
	} else if root, err = preparedRoot(root); err != nil {
		return nil, err
	} else {
		top = append(top, "opt")
	}
	for _, name := range top {
		path := filepath.Join(root, name)
		if target, err := os.Readlink(path); err == nil {
			args = append(args, "--symlink", target, "/"+name)
		} else if _, err := os.Lstat(path); err == nil {
			args = append(args, "--ro-bind", path, "/"+name)
		}
	}
	for _, name := range []string{"/etc/alternatives", "/etc/ld.so.cache"} {
		args = append(args, "--ro-bind-try", filepath.Join(root, name), name)
	}
	return args, nil
}

// preparedRoot returns the path of a directory with a system, or an *Unavailable.
func preparedRoot(root string) (string, error) {
	root, err := filepath.Abs(root)
	if err != nil {
		return "", err
	}
	info, err := os.Stat(root)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", unavailableRoot(root, "is not there")
	case err != nil:
		return "", unavailableRoot(root, fmt.Sprintf("cannot be looked into (%v)", err))
	case !info.IsDir():
		return "", unavailableRoot(root, "is no directory")
	}
	for _, name := range []string{"usr", "bin"} {
		if _, err := os.Stat(filepath.Join(root, name)); err == nil {
			return root, nil
		}
	}
	return "", unavailableRoot(root, "has neither usr nor bin")
}

// bwrapArguments returns bubblewrap's arguments for one command. file makes a descriptor that
// bubblewrap inherits.
func (s *Sandbox) bwrapArguments(c Command, l Limits, executable string, file func(text []byte) (fd int, err error)) ([]string, error) {
	var failed error
	data := func(text []byte) string {
		fd, err := file(text)
		if err != nil {
			failed = err
		}
		return strconv.Itoa(fd)
	}
	temp := strconv.FormatInt(l.Temp, 10)
	args := []string{
		// unshare-user and not unshare-all: without a user namespace it must fail.
		"--unshare-user", "--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts", "--unshare-cgroup",
		"--uid", "1000", "--gid", "1000", "--hostname", "sandbox",
		"--die-with-parent", "--new-session", "--cap-drop", "ALL",
		"--disable-userns", "--assert-userns-disabled",
		// Bubblewrap's process 1 has the filter, too: the command may write into its memory.
		"--seccomp", data(s.filter),
		"--perms", "0755", "--dir", "/etc",
	}
	args = append(args, s.system...)
	for _, f := range small {
		args = append(args, "--perms", "0444", "--file", data([]byte(f.text)), f.path)
	}
	args = append(args, "--perms", "0755", "--dir", "/etc/ssl", "--perms", "0755", "--dir", filepath.Dir(certificates))
	if len(c.CA) > 0 {
		args = append(args,
			"--perms", "0444", "--file", data(c.CA), certificates, "--symlink", certificates, "/etc/ssl/cert.pem")
	}
	// A writable /proc exposes the kernel's settings and those of every process, such as whether
	// the kernel kills it first when memory is short.
	args = append(args, "--proc", "/proc", "--remount-ro", "/proc",
		"--perms", "0755", "--size", "65536", "--tmpfs", "/dev") // not --dev, which has terminals
	for _, name := range []string{"null", "zero", "full", "random", "urandom"} {
		args = append(args, "--dev-bind", "/dev/"+name, "/dev/"+name)
	}
	args = append(args,
		"--symlink", "/proc/self/fd", "/dev/fd", "--symlink", "/proc/self/fd/0", "/dev/stdin",
		"--symlink", "/proc/self/fd/1", "/dev/stdout", "--symlink", "/proc/self/fd/2", "/dev/stderr",
		"--perms", "1777", "--size", temp, "--tmpfs", "/dev/shm", "--remount-ro", "/dev",
		"--perms", "1777", "--size", temp, "--tmpfs", "/tmp",
		"--perms", "0755", "--dir", "/run", "--ro-bind", executable, inside.Path,
		"--bind", c.Folder, workspace)
	if c.Attachments != "" {
		args = append(args, "--ro-bind", c.Attachments, workspace+"/"+attachments)
	}
	// The root is a file system in memory without a size limit.
	return append(args, "--remount-ro", "/", "--chdir", workspace), failed
}
