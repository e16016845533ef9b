//go:build unix

package devdb

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// RepositoryVariable names a mirror of Maven Central, which has the programs.
const RepositoryVariable = "PARLEY_POSTGRES_REPOSITORY"

const mavenCentral = "https://repo1.maven.org/maven2"

// The limits of a download.
const (
	maxDownload  = 128 << 20 // bytes
	downloadTime = 15 * time.Minute
)

// source is the repository of programs and their cache.
type source struct {
	repository string
	cache      string
	platform   string
	releases   map[int]release
	as         account
	progress   func(string)
}

func sourceFor(as account, opts Options) (source, error) {
	cache, err := as.cacheDir()
	return source{
		repository: strings.TrimSuffix(cmp.Or(opts.Repository, os.Getenv(RepositoryVariable), mavenCentral), "/"),
		cache:      filepath.Join(cache, "postgres"),
		platform:   platformName(), releases: releases,
		as: as, progress: opts.Progress,
	}, err
}

// fetchPrograms returns programs from the cache, and downloads them first if necessary. It unpacks
// and runs a download only if it has the pinned checksum.
func (s source) fetchPrograms(ctx context.Context, major int) (programs, error) {
	r := s.releases[cmp.Or(major, newest)]
	sum := r.sums[s.platform]
	if sum == "" {
		return programs{}, fmt.Errorf("there is no download of PostgreSQL %d for %s", cmp.Or(major, newest), s.platform)
	}
	if err := makeDir(s.cache); err != nil {
		return programs{}, err
	}
	if err := checkOwner(s.cache, os.Getuid()); err != nil {
		return programs{}, err
	}
	home := filepath.Join(s.cache, r.version+"-"+sum[:12])
	if prog, err := s.inspectPrograms(ctx, home); err == nil {
		return prog, nil
	}
	lock, err := lockFile(ctx, filepath.Join(s.cache, "fetch.lock"), exclusive)
	if err != nil {
		return programs{}, err
	}
	defer lock.close()
	if prog, err := s.inspectPrograms(ctx, home); err == nil {
		return prog, nil // by the process that had the lock
	}
	s.progress(fmt.Sprintf("fetching PostgreSQL %s for %s from %s (15 to 35 MB)", r.version, s.platform, s.hostName()))
	if err := s.installPrograms(ctx, r.version, sum, home); err != nil {
		return programs{}, err
	}
	s.progress("PostgreSQL " + r.version + " is in " + home)
	return s.inspectPrograms(ctx, home)
}

// inspectPrograms reads the version of downloaded programs, as the account that will run them.
func (s source) inspectPrograms(ctx context.Context, home string) (programs, error) {
	return inspectAs(ctx, filepath.Join(home, "bin"), s.as.applyTo)
}

// installPrograms downloads, verifies and unpacks programs, and then renames them into place.
func (s source) installPrograms(ctx context.Context, version, sum, home string) error {
	fresh := filepath.Join(s.cache, "fetch.new")
	if err := os.RemoveAll(fresh); err != nil {
		return err
	}
	defer os.RemoveAll(fresh)
	if err := os.MkdirAll(fresh, 0o755); err != nil {
		return err
	}
	jar := filepath.Join(fresh, "postgres.jar")
	got, err := s.downloadArchive(ctx, version, jar)
	if err != nil {
		return err
	}
	if got != sum {
		return fmt.Errorf("the download from %s is not the file that this release of Parley expects: its SHA-256 is %s, not %s",
			s.hostName(), got, sum)
	}
	if err := unpackJar(jar, filepath.Join(fresh, "programs")); err != nil {
		return fmt.Errorf("unpack PostgreSQL: %w", err)
	}
	if err := s.as.makeReadable(fresh); err != nil {
		return err
	}
	return os.Rename(filepath.Join(fresh, "programs"), home)
}

// downloadArchive writes the archive of a version to a file and returns its SHA-256.
func (s source) downloadArchive(ctx context.Context, version, path string) (sum string, err error) {
	ctx, cancel := context.WithTimeout(ctx, downloadTime)
	defer cancel()
	name := "embedded-postgres-binaries-" + s.platform
	address := fmt.Sprintf("%s/io/zonky/test/postgres/%s/%s/%[2]s-%[3]s.jar", s.repository, name, version)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return "", errors.New("the address of the repository is not valid") // it may contain a password
	}
	transport := &http.Transport{Proxy: http.ProxyFromEnvironment, ResponseHeaderTimeout: time.Minute, TLSHandshakeTimeout: 30 * time.Second}
	defer transport.CloseIdleConnections()
	res, err := (&http.Client{Transport: transport}).Do(req)
	if e, ok := errors.AsType[*url.Error](err); ok {
		return "", fmt.Errorf("ask %s: %w", s.hostName(), e.Err)
	}
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return "", fmt.Errorf("%s answers %s for PostgreSQL %s", s.hostName(), res.Status, version)
	}
	return s.saveDownload(res.Body, path)
}

// saveDownload writes a download to a file.
func (s source) saveDownload(body io.Reader, path string) (sum string, err error) {
	f, err := os.Create(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	begun := time.Now()
	slow := time.AfterFunc(5*time.Second, func() { s.progress("still fetching PostgreSQL") })
	defer slow.Stop()
	hash := sha256.New()
	n, err := io.Copy(io.MultiWriter(f, hash), io.LimitReader(body, maxDownload+1))
	if err != nil {
		return "", fmt.Errorf("download from %s after %d s: %w", s.hostName(), int(time.Since(begun).Seconds()), err)
	}
	if n > maxDownload {
		return "", fmt.Errorf("the download from %s is larger than %d bytes", s.hostName(), maxDownload)
	}
	return hex.EncodeToString(hash.Sum(nil)), f.Close()
}

// hostName returns the part of the repository's address that may be shown: the rest can contain a
// password.
func (s source) hostName() string {
	u, err := url.Parse(s.repository)
	if err != nil || u.Host == "" {
		return "the repository"
	}
	return u.Host
}
