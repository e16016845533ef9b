package workdir_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-server/parley/internal/testing/slow"
	"github.com/parley-server/parley/internal/toolenv/workdir"
)

// noise writes bytes that no two files have in common.
func noise(t testing.TB, path string, seed byte, size int) (sum [sha256.Size]byte) {
	t.Helper()
	f, err := os.Create(path)
	must(t, err)
	defer f.Close()
	hash := sha256.New()
	block := make([]byte, 64<<10)
	for i := range size / len(block) {
		for j := 0; j < len(block); j += 8 {
			binary.LittleEndian.PutUint64(block[j:], uint64(i*len(block)+j)*0x9e3779b97f4a7c15+uint64(seed))
		}
		if _, err := io.MultiWriter(f, hash).Write(block); err != nil {
			t.Fatal(err)
		}
	}
	return [sha256.Size]byte(hash.Sum(nil))
}

// peak measures the memory in use while fn runs.
func peak(fn func()) (before, most uint64) {
	stop, done := make(chan struct{}), make(chan struct{})
	look := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before = look()
	go func() {
		defer close(done)
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-stop:
				return
			case <-tick.C:
				most = max(most, look())
			}
		}
	}()
	fn()
	close(stop)
	<-done
	return before, most
}

// Hundreds of MiB are sent to the database and back without being in memory at once, and the log
// has a line about it. Not parallel: the test measures the memory of the whole process.
func TestMemoryIsFlat(t *testing.T) {
	slow.Test(t, "measures memory")
	defer debug.SetGCPercent(debug.SetGCPercent(100))
	var log bytes.Buffer
	var told []workdir.Progress
	w := newWorld(t, workdir.Options{Log: slog.New(slog.NewTextHandler(&log, nil)), Progress: func(p workdir.Progress) {
		told = append(told, p)
	}})
	f, dir := w.restore(t)
	sums := map[string][sha256.Size]byte{}
	var total int64
	for n, size := range []int{60 << 20, 60 << 20, 60 << 20} {
		name := fmt.Sprint("large", n)
		sums[name] = noise(t, filepath.Join(dir, name), byte(n), size)
		total += int64(size)
	}
	for n := range 160 {
		name := fmt.Sprint("small", n)
		sums[name] = noise(t, filepath.Join(dir, name), byte(10+n), 128<<10)
		total += 128 << 10
	}
	const bound = 40 << 20 // batches of 1 MiB in the driver, and remains of earlier ones; a file has 60 MiB
	before, most := peak(func() { save(t, f) })
	if most > before+bound {
		t.Errorf("save: %d KiB before, at most %d KiB meanwhile", before>>10, most>>10)
	}
	t.Logf("save: %d KiB before, at most %d KiB meanwhile", before>>10, most>>10)
	there := t.TempDir()
	before, most = peak(func() {
		_, err := w.Restore(t.Context(), w.claim(), there)
		must(t, err)
	})
	if most > before+bound {
		t.Errorf("restore: %d KiB before, at most %d KiB meanwhile", before>>10, most>>10)
	}
	t.Logf("restore: %d KiB before, at most %d KiB meanwhile", before>>10, most>>10)
	for name, want := range sums {
		in, err := os.Open(filepath.Join(there, name))
		must(t, err)
		hash := sha256.New()
		_, err = io.Copy(hash, in)
		must(t, err)
		in.Close()
		if [sha256.Size]byte(hash.Sum(nil)) != want {
			t.Errorf("%s was restored with other content", name)
		}
	}
	for _, want := range []string{`msg="save files"`, `msg="restore files"`, "session=" + w.session.String(), fmt.Sprint("bytes=", total),
		"state=done"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("%s is not in the log: %s", want, log.String())
		}
	}
	if len(told) < 2 || told[0].OfBytes != total || !told[0].Saving || told[len(told)-1] != (workdir.Progress{Session: w.session,
		Files: 163, OfFiles: 163, Bytes: total, OfBytes: total}) {
		t.Errorf("%+v", told)
	}
}

// Small folders are not logged.
func TestSmallFoldersAreQuiet(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	w := newWorld(t, workdir.Options{Log: slog.New(slog.NewTextHandler(&log, nil))})
	f, dir := w.restore(t)
	write(t, dir, "a", strings.Repeat("content", 1_000_000))
	save(t, f)
	w.restore(t)
	if log.Len() > 0 {
		t.Error(log.String())
	}
}

// During a long restore, a line every 5 seconds reports the progress.
func TestALongRestoreTellsHowFarItIs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		moved, end := workdir.Meter(t.Context(), slog.New(slog.NewTextHandler(&log, nil)), 100<<20)
		for range 100 {
			time.Sleep(workdir.LogEvery / 10)
			moved(1 << 20)
		}
		end()
		lines := strings.Split(strings.TrimSpace(log.String()), "\n")
		if len(lines) != 11 || !strings.Contains(lines[2],
			fmt.Sprintf(`state="under way" files=0 of_files=1 bytes=%d of_bytes=%d duration=15s`, 30<<20, 100<<20)) ||
			!strings.Contains(lines[10], "state=done") {
			t.Errorf("%s", log.String())
		}
	})
}
