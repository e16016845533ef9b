//go:build unix

package devdb

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
)

// account is the user that PostgreSQL runs as: the current one, unless that is root.
type account struct {
	uid, gid int
	name     string
	drop     bool
}

// accountFor returns the owner of existing data, which PostgreSQL requires.
func accountFor(data string) (account, error) {
	me := account{uid: os.Getuid(), gid: os.Getgid()}
	owner, err := ownerOf(data)
	switch {
	case err == nil && owner == me.uid && me.uid != 0:
		return me, nil
	case err == nil && me.uid != 0:
		return me, fmt.Errorf("%s belongs to the user %s: run as that user or choose another directory", data, userName(owner))
	case err == nil && owner != 0:
		return lookupAccount(strconv.Itoa(owner), user.LookupId)
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return me, err
	case me.uid != 0:
		return me, nil
	}
	for _, name := range []string{"postgres", "_postgres", "nobody"} {
		if a, err := lookupAccount(name, user.Lookup); err == nil {
			return a, nil
		}
	}
	return me,
		errors.New("PostgreSQL refuses to run as root, and neither the user postgres nor the user nobody exists: run as an ordinary user")
}

func lookupAccount(key string, by func(string) (*user.User, error)) (account, error) {
	u, err := by(key)
	if err != nil {
		return account{}, err
	}
	uid, err := strconv.Atoi(u.Uid)
	if err != nil || uid == 0 {
		return account{}, fmt.Errorf("user %s has uid %s", u.Username, u.Uid)
	}
	gid, err := strconv.Atoi(u.Gid)
	return account{uid: uid, gid: gid, name: u.Username, drop: true}, err
}

func ownerOf(path string) (int, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return 0, err
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, fmt.Errorf("%s: no owner", path)
	}
	return int(st.Uid), nil
}

func userName(uid int) string {
	if u, err := user.LookupId(strconv.Itoa(uid)); err == nil {
		return u.Username
	}
	return strconv.Itoa(uid)
}

// makePrivate creates a directory that only this account can access.
func (a account) makePrivate(dir string) error {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	if a.drop {
		return os.Chown(dir, a.uid, a.gid)
	}
	return nil
}

// cacheDir returns the directory of downloaded programs. Root's own cache directory is closed to
// other users.
func (a account) cacheDir() (string, error) {
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	dir = filepath.Join(dir, "parley")
	if err := makeDir(dir); err != nil {
		return "", err
	}
	if a.drop && !a.canEnter(dir) {
		return "/var/cache/parley", nil
	}
	return dir, nil
}

// makeReadable makes everything below dir readable for the account.
func (a account) makeReadable(dir string) error {
	if !a.drop {
		return nil
	}
	return filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.Type()&fs.ModeSymlink != 0 {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		mode := info.Mode().Perm() | 0o444
		if mode&0o100 != 0 {
			mode |= 0o111
		}
		return os.Chmod(path, mode)
	})
}

// canEnter reports whether the account can enter dir. It asks the kernel, because mode bits do not
// include access lists.
func (a account) canEnter(dir string) bool {
	cmd := exec.Command("/bin/sh", "-c", ":")
	cmd.Dir = dir
	a.applyTo(cmd)
	return cmd.Run() == nil
}

// applyTo makes cmd run as the account, without variables of our environment that could configure
// PostgreSQL or that it does not need, such as API keys.
func (a account) applyTo(cmd *exec.Cmd) {
	cmd.Env = []string{"LC_ALL=C", "TZ=UTC", "HOME=/"}
	for _, key := range []string{"PATH", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "TMPDIR"} {
		if v, ok := os.LookupEnv(key); ok {
			cmd.Env = append(cmd.Env, key+"="+v)
		}
	}
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	if a.drop {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(a.uid), Gid: uint32(a.gid)}
	}
}
