package sandbox_test

import (
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/parley-server/parley/internal/toolenv/sandbox"
)

// tryLook checks whether paths exist, however they are reached.
func tryLook(paths []string) error {
	for _, path := range paths {
		_, err := os.ReadDir(path)
		if err != nil {
			_, err = os.ReadFile(path)
		}
		if err != nil {
			_, err = os.Lstat(path)
		}
		tried(path, err)
	}
	return nil
}

func TestHostsFilesAreNotThere(t *testing.T) {
	t.Parallel()
	s := open(t, sandbox.Config{})
	outside := passable(t)
	secret := filepath.Join(outside, "secret")
	if err := os.WriteFile(secret, []byte("canary"), 0o644); err != nil {
		t.Fatal(err)
	}
	socket := filepath.Join(outside, "postgres.sock")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	other := folder(t, s)
	hidden := []string{
		secret, outside, socket, other, filepath.Dir(other), "/etc/shadow", "/etc/hostname", "/etc/ssh", "/root", "/home", "/var",
		"/sys", "/boot", "/mnt", "/srv", "/oldroot", "/newroot", "/.dockerenv", "/run/docker.sock", "/var/run/docker.sock",
		"/run/systemd", "/run/dbus", "/dev/tty", "/dev/ptmx", "/dev/pts", "/dev/mem", "/dev/kmsg", "/dev/vda", "/dev/sda",
		"/dev/vsock", "/dev/kvm", "/dev/fuse", "/dev/net/tun", "/dev/mqueue",
	}
	argv := with("look", hidden...)
	for _, path := range hidden {
		argv = append(argv, "/proc/1/root"+path, "/proc/self/root"+path, "/workspace/../../.."+path)
	}
	argv = append(argv, "/proc/"+strconv.Itoa(os.Getpid())+"/root")
	ends := attempt(t, s, argv)
	for path, end := range ends {
		if !strings.HasSuffix(end, unix.ENOENT.Error()) {
			t.Errorf("%s: %s", path, end)
		}
	}
	if len(ends) != 4*len(hidden)+1 {
		t.Errorf("%d of %d paths were looked at", len(ends), 4*len(hidden)+1)
	}
}

// tryOpen opens files for writing, makes files in directories and devices in others.
func tryOpen(paths []string) error {
	for _, path := range paths {
		how, path, _ := strings.Cut(path, ":")
		var err error
		switch how {
		case "write":
			var f *os.File
			if f, err = os.OpenFile(path, os.O_WRONLY, 0); err == nil {
				f.Close()
			}
		case "read":
			_, err = os.Open(path)
		case "make":
			err = os.WriteFile(filepath.Join(path, "planted"), []byte("x"), 0o644)
		case "device": // 1:1 is the machine's memory
			device := filepath.Join(path, "mem")
			if err = unix.Mknod(device, unix.S_IFCHR|0o666, int(unix.Mkdev(1, 1))); err == nil {
				_, err = os.Open(device)
			}
		case "time":
			err = os.Chtimes(path, time.Unix(0, 0), time.Unix(0, 0))
		}
		tried(how+":"+path, err)
	}
	return nil
}

func TestNothingButTheFolderCanBeWritten(t *testing.T) {
	t.Parallel()
	s := open(t, sandbox.Config{})
	given := passable(t)
	if err := os.WriteFile(filepath.Join(given, "report.txt"), []byte("given"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := s.Give(given); err != nil {
		t.Fatal(err)
	}
	where := folder(t, s)
	if err := os.Symlink("/usr/bin", filepath.Join(where, "attachments")); err != nil {
		t.Fatal(err)
	}
	var argv []string
	for _, dir := range []string{
		"/", "/usr", "/usr/bin", "/usr/local/bin", "/bin", "/lib", "/etc", "/etc/ssl/certs", "/etc/alternatives", "/dev", "/run",
		"/proc", "/proc/sys/kernel", "/workspace/attachments",
	} {
		argv = append(argv, "make:"+dir)
	}
	for _, file := range []string{
		"/run/init", "/bin/sh", "/etc/passwd", "/etc/hosts", "/etc/resolv.conf", "/etc/ld.so.cache",
		"/etc/ssl/certs/ca-certificates.crt", "/workspace/attachments/report.txt",
		"/proc/sys/kernel/core_pattern", "/proc/sys/kernel/modprobe", "/proc/sys/kernel/hotplug", "/proc/sys/vm/overcommit_memory",
		"/proc/sysrq-trigger", "/proc/sys/fs/binfmt_misc/register", "/proc/kcore", "/proc/kmsg",
	} {
		argv = append(argv, "write:"+file)
	}
	argv = append(argv, "read:/proc/kcore", "read:/proc/kmsg", "device:/workspace", "device:/tmp", "device:/dev/shm", "time:/dev/null",
		"time:/run/init", "time:/usr/bin/bash")
	_, out := run(t, s, sandbox.Command{Argv: with("open", argv...), Folder: where, Attachments: given, CA: []byte("none\n")})
	if n := strings.Count(out, "\n"); n != len(argv) {
		t.Fatalf("%d of %d were tried: %s", n, len(argv), out)
	}
	for line := range strings.Lines(out) {
		if strings.Contains(line, "\tdone") {
			t.Error(line)
		}
	}
	_, out = run(t, s, sandbox.Command{Argv: bash("cat attachments/*; for d in . /tmp /dev/shm; do echo x > $d/mine && echo made; done"),
		Folder: where, Attachments: given})
	if out != "givenmade\nmade\nmade\n" {
		t.Errorf("capabilities: %q", out)
	}
}

// trySettings counts the kernel's settings that can be opened for writing.
func trySettings([]string) error {
	return filepath.WalkDir("/proc/sys", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return nil
		}
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err == nil {
			f.Close()
		}
		tried(path, err)
		return nil
	})
}

func TestKernelSettingsCannotBeWritten(t *testing.T) {
	t.Parallel()
	s := open(t, sandbox.Config{})
	ends := attempt(t, s, with("settings"))
	if len(ends) < 100 {
		t.Errorf("only %d settings were found", len(ends))
	}
	for path, end := range ends {
		if end == "done" {
			t.Errorf("%s can be written", path)
		}
	}
}
