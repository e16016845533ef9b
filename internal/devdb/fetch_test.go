//go:build unix

package devdb_test

import (
	"archive/zip"
	"bytes"
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/parley-server/parley/internal/devdb"
	"github.com/parley-server/parley/internal/testing/need"
	"github.com/parley-server/parley/internal/testing/slow"
)

// programsArchive has three shell scripts that know their version, packed as the
// repository packs PostgreSQL.
//
//go:embed testdata/programs.txz
var programsArchive []byte

// jar is the archive as the repository has it, and its checksum.
func jar(t *testing.T) (body []byte, sum string) {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	f, err := w.Create("postgres.txz")
	if err == nil {
		_, err = f.Write(programsArchive)
	}
	if err = errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	hash := sha256.Sum256(b.Bytes())
	return b.Bytes(), hex.EncodeToString(hash[:])
}

// repository serves an archive with its checksum, as Maven Central does. A checksum from the same
// origin proves nothing, so a download must not be checked against it.
func repository(t *testing.T, body []byte) (url string, asked func() []string) {
	t.Helper()
	hash := sha256.Sum256(body)
	var mu sync.Mutex
	var paths []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		paths = append(paths, r.URL.Path)
		mu.Unlock()
		switch {
		case !strings.Contains(r.URL.Path, "/18."):
			http.NotFound(w, r)
		case strings.HasSuffix(r.URL.Path, ".sha256"):
			w.Write([]byte(hex.EncodeToString(hash[:])))
		default:
			w.Write(body)
		}
	}))
	t.Cleanup(server.Close)
	return server.URL, func() []string {
		mu.Lock()
		defer mu.Unlock()
		return paths
	}
}

func TestFetchedOnceThenFromTheCache(t *testing.T) {
	t.Parallel()
	body, sum := jar(t)
	url, asked := repository(t, body)
	cache := filepath.Join(t.TempDir(), "cache")
	var said []string
	version, dir, err := devdb.Fetch(t.Context(), url, cache, sum, 0, func(line string) { said = append(said, line) })
	if err != nil || version != "18.3" || !strings.HasPrefix(dir, cache) {
		t.Fatalf("%s in %s, %v", version, dir, err)
	}
	if len(said) != 2 || !strings.Contains(said[0], "fetching PostgreSQL 18") || !strings.Contains(said[1], cache) {
		t.Errorf("progress: %q", said)
	}
	before := len(asked())
	_, again, err := devdb.Fetch(t.Context(), "http://127.0.0.1:1", cache, sum, 18, nil)
	if err != nil || again != dir || len(asked()) != before {
		t.Errorf("%s, %v; asked for %q", again, err, asked())
	}
}

// TestAnotherFileThanThePinnedOneIsNotUsed checks that other programs from a mirror are not
// unpacked, even with a matching checksum from the mirror.
func TestAnotherFileThanThePinnedOneIsNotUsed(t *testing.T) {
	t.Parallel()
	body, sum := jar(t)
	for name, spoilt := range map[string][]byte{"another archive": append(slices.Clone(body), 0), "cut off": body[:len(body)-1],
		"empty": nil} {
		url, _ := repository(t, spoilt)
		cache := t.TempDir()
		_, dir, err := devdb.Fetch(t.Context(), url, cache, sum, 0, func(string) {})
		if err == nil || !strings.Contains(err.Error(), "SHA-256") || !strings.Contains(err.Error(), sum) {
			t.Errorf("%s: %s, %v", name, dir, err)
		}
		left, _ := filepath.Glob(filepath.Join(cache, "*", "*"))
		if len(left) != 0 {
			t.Errorf("%s left %v", name, left)
		}
	}
}

func TestPlatformsWithoutAPinnedFileHaveNoDownload(t *testing.T) {
	t.Parallel()
	body, _ := jar(t)
	url, asked := repository(t, body)
	_, _, err := devdb.Fetch(t.Context(), url, t.TempDir(), "", 18, func(string) {})
	if err == nil || !strings.Contains(err.Error(), "there is no download of PostgreSQL 18") || len(asked()) != 0 {
		t.Errorf("%v; asked for %q", err, asked())
	}
}

func TestPinnedSumsAreSums(t *testing.T) {
	t.Parallel()
	seen := make(map[string]bool)
	for version, sums := range devdb.Releases() {
		if sums["linux-amd64"] == "" {
			t.Errorf("%s has no download for linux-amd64", version)
		}
		for platform, sum := range sums {
			if raw, err := hex.DecodeString(sum); err != nil || len(raw) != sha256.Size || seen[sum] {
				t.Errorf("%s for %s: %q", version, platform, sum)
			}
			seen[sum] = true
		}
	}
}

// downloads skips a test that downloads PostgreSQL, unless that is asked for or every test must run.
func downloads(t *testing.T) {
	t.Helper()
	if os.Getenv("PARLEY_TEST_FETCH") == "" && !need.All() {
		t.Skip("set PARLEY_TEST_FETCH to download PostgreSQL")
	}
}

// TestPinnedFilesAreServed downloads every version for this machine when asked to. It unpacks them,
// too, unless the race detector makes that very slow.
func TestPinnedFilesAreServed(t *testing.T) {
	t.Parallel()
	downloads(t)
	for _, major := range []int{15, 16, 17, 18} {
		if err := devdb.FetchPlatform(t.Context(), t.TempDir(), "linux-amd64", major, !slow.Race); err != nil {
			t.Errorf("%d: %v", major, err)
		}
	}
}

func TestFetchEndsWithItsContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	reached, release := make(chan struct{}), make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		close(reached)
		<-release
	}))
	t.Cleanup(func() {
		close(release)
		server.Close()
	})
	go func() {
		<-reached
		cancel()
	}()
	if _, _, err := devdb.Fetch(ctx, server.URL, t.TempDir(), strings.Repeat("0", 64), 0, func(string) {}); !errors.Is(err, context.Canceled) {
		t.Errorf("error: %v", err)
	}
}

// fetching lets a helper ignore the installed programs, with an empty cache.
func fetching(t *testing.T, more ...string) func(*exec.Cmd) {
	t.Helper()
	cache := filepath.Dir(newDir(t))
	return func(cmd *exec.Cmd) {
		cmd.Env = append(cmd.Env, "HOME="+cache, "XDG_CACHE_HOME="+cache, devdb.BinVariable+"=fetch")
		cmd.Env = append(cmd.Env, more...)
	}
}

// TestNothingInstalledAndNothingToFetch checks the error that a new user sees first.
func TestNothingInstalledAndNothingToFetch(t *testing.T) {
	t.Parallel()
	u := user(t, newDir(t), fetching(t, devdb.RepositoryVariable+"=http://name:password@127.0.0.1:1/maven2"))
	for _, want := range []string{"no PostgreSQL found", "127.0.0.1:1", "install", "DATABASE_URL"} {
		if !strings.Contains(u.Error, want) {
			t.Errorf("no %q in: %s", want, u.Error)
		}
	}
	if strings.Contains(u.Error+strings.Join(u.Progress, ""), "password") {
		t.Errorf("shows the password: %s", u.Error)
	}
}

// TestFetchedPostgresWorks downloads the real programs when asked to.
func TestFetchedPostgresWorks(t *testing.T) {
	t.Parallel()
	downloads(t)
	u := user(t, newDir(t), fetching(t))
	t.Log(u.Progress)
	if u.Error != "" || !strings.HasPrefix(query(t, u.DSN, "SHOW server_version"), u.Version) {
		t.Errorf("%+v", u.report)
	}
	if status, err := os.ReadFile("/proc/" + itoa(u.PID) + "/status"); err == nil && strings.Contains(string(status), "Uid:\t0") {
		t.Error("the fetched PostgreSQL runs as root")
	}
}

func TestChosenProgramsMustBeThere(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	u := user(t, newDir(t), func(cmd *exec.Cmd) { cmd.Env = append(cmd.Env, devdb.BinVariable+"="+dir) })
	if !strings.Contains(u.Error, devdb.BinVariable+"="+dir) {
		t.Errorf("error: %s", u.Error)
	}
}
