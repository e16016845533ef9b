//go:build unix

package devdb

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// place contains the paths in one directory, and the account that owns them.
type place struct {
	dir   string
	data  string // the data directory: complete or absent
	fresh string // a data directory that is being created
	log   string
	start string // lock: one process decides between joining and starting
	users string // lock: shared by all users of the server; the guard waits for it
	peers string // lock: the same without the guard; by it the last process knows that it is the last
	guard string // lock: held by the guard; its text is the guard's task
	as    account
}

func placeAt(dir string, as account) place {
	in := func(name string) string { return filepath.Join(dir, name) }
	return place{
		dir: dir, data: in("data"), fresh: in("data.new"), log: in("postgres.log"),
		start: in("start.lock"), users: in("users.lock"), peers: in("peers.lock"), guard: in("guard.lock"), as: as,
	}
}

// choosePlace creates the directory, or another one that PostgreSQL's user can reach.
func choosePlace(dir string, progress func(string)) (place, error) {
	as, err := accountFor(filepath.Join(dir, "data"))
	if err != nil {
		return place{}, err
	}
	if err := makeDir(dir); err != nil {
		return place{}, err
	}
	if as.drop && !as.canEnter(dir) {
		refuge := filepath.Join("/var/tmp", fmt.Sprintf("parley-%d-%s", os.Getuid(), shortHash(dir)))
		progress(fmt.Sprintf("the user %s cannot reach %s, data in %s", as.name, dir, refuge))
		if err := makeDir(refuge); err != nil {
			return place{}, err
		}
		if err := checkOwner(refuge, os.Getuid()); err != nil { // any user can create directories there
			return place{}, err
		}
		dir = refuge
		if as, err = accountFor(filepath.Join(dir, "data")); err != nil {
			return place{}, err
		}
	}
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return place{}, err
	}
	p := placeAt(dir, as)
	return p, p.prepareFiles()
}

func makeDir(dir string) error {
	_, err := os.Stat(dir)
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if os.Getuid() == 0 {
		return os.Chmod(dir, 0o755) // regardless of the umask; the data below stays private
	}
	return nil
}

// prepareFiles creates the files that root would otherwise create as its own, so that the owner of
// the data could not open them.
func (p place) prepareFiles() error {
	for _, path := range []string{p.start, p.users, p.peers, p.guard, p.log} {
		f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
		if err != nil {
			return err
		}
		if p.as.drop {
			err = f.Chown(p.as.uid, p.as.gid)
		}
		f.Close()
		if err != nil {
			return err
		}
	}
	return nil
}

// checkOwner rejects a directory of another user.
func checkOwner(dir string, uid int) error {
	owner, err := ownerOf(dir)
	if err != nil {
		return err
	}
	if owner != uid {
		return fmt.Errorf("%s belongs to the user %s", dir, userName(owner))
	}
	return nil
}

// maxSocket is the longest socket path that every system allows, with room.
const maxSocket = 90

// socketDir returns the directory of the socket: our own if the path is short and has no special
// characters, else one in the system's temporary directory.
func (p place) socketDir() (string, error) {
	plain := func(dir string) bool {
		return len(dir)+len("/.s.PGSQL.5432") <= maxSocket && strings.Trim(dir, pathLetters) == ""
	}
	dir := filepath.Join(p.dir, "run")
	for _, tmp := range []string{os.TempDir(), "/tmp"} {
		if plain(dir) {
			break
		}
		dir = filepath.Join(tmp, "parley-"+shortHash(p.dir))
	}
	err := p.as.makePrivate(dir)
	if errors.Is(err, fs.ErrExist) {
		if err = checkOwner(dir, p.as.uid); err != nil && checkOwner(dir, os.Getuid()) == nil {
			err = os.Lchown(dir, p.as.uid, p.as.gid) // it may be left from a crash
		}
	}
	return dir, err
}

const pathLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-"

func shortHash(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:6])
}
