package sandbox

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// TestNobodyMeasuresForTheDead has too much in a folder: once the process has ended, the watch
// returns no reason, whatever the folder contains.
func TestNobodyMeasuresForTheDead(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{"a", "b"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	p := &process{ended: make(chan struct{})}
	if reason, err := p.measureFolder(dir, 0, Limits{Files: 1, Folder: mib}); reason != "killed: it has more than 1 files" || err != nil {
		t.Errorf("%q, %v", reason, err)
	}
	if reason, err := p.measureFolder(dir, 0, Limits{Files: 2, Folder: mib}); reason != "" || err != nil {
		t.Errorf("at the limit: %q, %v", reason, err)
	}
	close(p.ended)
	if reason, err := p.measureFolder(dir, 0, Limits{Files: 1, Folder: mib}); reason != "" || !errors.Is(err, errEnded) {
		t.Errorf("%q, %v", reason, err)
	}
}
