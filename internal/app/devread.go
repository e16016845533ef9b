package app

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/parley-server/parley/internal/loopback"
)

// maxDevEnv bounds dev.env, in bytes.
const maxDevEnv = 64 << 10

// ReadDevEnv reads dev.env, or returns an empty DevEnv if it does not exist. Commands obey this
// file because they run beside it, so it fails if another user could have written it.
func ReadDevEnv(dir string) (DevEnv, error) {
	text, err := readOwn(devEnvFile(dir))
	if errors.Is(err, fs.ErrNotExist) {
		return DevEnv{}, nil
	}
	if _, ok := errors.AsType[*ConfigError](err); ok {
		return DevEnv{}, err
	}
	if err != nil {
		return DevEnv{}, fmt.Errorf("read the development settings: %w", err)
	}
	lines, err := parseEnvFile(text)
	if err != nil {
		return DevEnv{}, fmt.Errorf("%s, %w", devEnvFile(dir), err)
	}
	var e DevEnv
	for _, line := range lines {
		switch line.name {
		case "PARLEY_URL":
			e.URL = line.value
		case "PARLEY_WORKSPACE":
			e.Workspace = line.value
		case "PARLEY_API_KEY":
			e.APIKey = line.value
		case "PARLEY_DATABASE_URL":
			e.DatabaseURL = line.value
		}
	}
	return e, nil
}

// readOwn reads a file that belongs to this user and that no other user can access.
func readOwn(path string) (string, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|openNonblock, 0)
	if err != nil {
		return "", err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return "", err
	}
	if why := notOwn(info); why != "" {
		return "", &ConfigError{[]string{path + " " + why + ", so another user may have written it. " +
			"Check its content and run `chmod 600 " + path + "` as its owner, or delete it and start parley serve --dev again."}}
	}
	text, err := io.ReadAll(io.LimitReader(f, maxDevEnv))
	return string(text), err
}

// CheckURL fails unless the server is on this machine. A folder that was copied or checked out must
// not direct a command and its secrets elsewhere.
func (e DevEnv) CheckURL() error {
	u, err := url.Parse(e.URL)
	if err == nil && (u.Scheme == "http" || u.Scheme == "https") && loopback.IsHost(u.Hostname()) {
		return nil
	}
	return &ConfigError{[]string{fmt.Sprintf("%s/dev.env names the server %q, which is not on this machine. ", DevDir, e.URL) +
		"Set PARLEY_URL and PARLEY_API_KEY to use it, or delete the file and start parley serve --dev again."}}
}

// CheckDatabase fails unless the database is on this machine.
func (e DevEnv) CheckDatabase() error {
	if e.DatabaseURL == "" {
		return nil
	}
	cfg, err := pgconn.ParseConfig(e.DatabaseURL)
	local := err == nil && isLocalHost(cfg.Host)
	if err == nil {
		for _, f := range cfg.Fallbacks {
			local = local && isLocalHost(f.Host)
		}
	}
	if local {
		return nil
	}
	return &ConfigError{[]string{DevDir + "/dev.env names a database that is not on this machine. " +
		"Set DATABASE_URL to use it, or delete the file and start parley serve --dev again."}}
}

// isLocalHost reports whether a PostgreSQL host is a socket or this machine.
func isLocalHost(host string) bool { return strings.HasPrefix(host, "/") || loopback.IsHost(host) }
