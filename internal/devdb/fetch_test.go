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
	"strings"
	"sync"
	"testing"

	"github.com/parley-server/parley/internal/devdb"
)

// programsArchive has three shell scripts that know their version, packed as the
// repository packs PostgreSQL.
//
//go:embed testdata/programs.txz
var programsArchive []byte

// repository serves the archive to whoever asks for PostgreSQL 18.
func repository(t *testing.T, spoil bool) (url string, asked func() []string) {
	t.Helper()
	var jar bytes.Buffer
	w := zip.NewWriter(&jar)
	f, err := w.Create("postgres.txz")
	if err == nil {
		_, err = f.Write(programsArchive)
	}
	if err = errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(jar.Bytes())
	if spoil {
		sum[0]++
	}
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
			w.Write([]byte(hex.EncodeToString(sum[:])))
		default:
			w.Write(jar.Bytes())
		}
	}))
	t.Cleanup(func() {
		server.Close()
		http.DefaultClient.CloseIdleConnections()
	})
	return server.URL, func() []string {
		mu.Lock()
		defer mu.Unlock()
		return paths
	}
}

func TestFetchedOnceThenFromTheCache(t *testing.T) {
	t.Parallel()
	url, asked := repository(t, false)
	cache := filepath.Join(t.TempDir(), "cache")
	var said []string
	version, dir, err := devdb.Fetch(t.Context(), url, cache, 0, func(line string) { said = append(said, line) })
	if err != nil || version != "18.3" || !strings.HasPrefix(dir, cache) {
		t.Fatalf("%s in %s, %v", version, dir, err)
	}
	if len(said) != 2 || !strings.Contains(said[0], "fetching PostgreSQL 18") || !strings.Contains(said[1], cache) {
		t.Errorf("progress: %q", said)
	}
	before := len(asked())
	_, again, err := devdb.Fetch(t.Context(), "http://127.0.0.1:1", cache, 18, nil)
	if err != nil || again != dir || len(asked()) != before {
		t.Errorf("%s, %v; asked for %q", again, err, asked())
	}
}

func TestSpoiltDownloadIsNotUsed(t *testing.T) {
	t.Parallel()
	url, _ := repository(t, true)
	cache := t.TempDir()
	for range 2 {
		if _, dir, err := devdb.Fetch(t.Context(), url, cache, 0, func(string) {}); err == nil || !strings.Contains(err.Error(), "checksums") {
			t.Errorf("%s, %v", dir, err)
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
		http.DefaultClient.CloseIdleConnections()
	})
	go func() {
		<-reached
		cancel()
	}()
	if _, _, err := devdb.Fetch(ctx, server.URL, t.TempDir(), 0, func(string) {}); !errors.Is(err, context.Canceled) {
		t.Errorf("said: %v", err)
	}
}

// fetching makes a helper pass by what is installed, with an empty cache.
func fetching(t *testing.T, more ...string) func(*exec.Cmd) {
	t.Helper()
	cache := filepath.Dir(newDir(t))
	return func(cmd *exec.Cmd) {
		cmd.Env = append(cmd.Env, "HOME="+cache, "XDG_CACHE_HOME="+cache, devdb.BinVariable+"=fetch")
		cmd.Env = append(cmd.Env, more...)
	}
}

// TestNothingInstalledAndNothingToFetch is the message of the first minute.
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

// TestFetchedPostgresWorks downloads the real thing when asked to.
func TestFetchedPostgresWorks(t *testing.T) {
	t.Parallel()
	if os.Getenv("PARLEY_TEST_FETCH") == "" {
		t.Skip("set PARLEY_TEST_FETCH to download PostgreSQL")
	}
	u := user(t, newDir(t), fetching(t))
	t.Log(u.Progress)
	if u.Error != "" || !strings.HasPrefix(query(t, u.DSN, "SHOW server_version"), u.Version) {
		t.Errorf("%+v", u.report)
	}
}

func TestChosenProgramsMustBeThere(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	u := user(t, newDir(t), func(cmd *exec.Cmd) { cmd.Env = append(cmd.Env, devdb.BinVariable+"="+dir) })
	if !strings.Contains(u.Error, devdb.BinVariable+"="+dir) {
		t.Errorf("said: %s", u.Error)
	}
}
