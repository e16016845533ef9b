package app

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/parley-server/parley/internal/devdb"
)

// claimDirectory creates the development directory and takes its lock: of several servers in one
// directory, dev.env names the one that holds it, as long as it runs. Another one may join it at an
// address of its own, and does not change dev.env.
func (s *service) claimDirectory() (release func(), err error) {
	if err := os.MkdirAll(s.DevDir, 0o755); err != nil {
		return nil, fmt.Errorf("make the development directory: %w", err)
	}
	if err := os.WriteFile(filepath.Join(s.DevDir, ".gitignore"), []byte("*\n"), 0o644); err != nil {
		return nil, fmt.Errorf("write to the development directory: %w", err)
	}
	release, s.named, err = devdb.TryLock(filepath.Join(s.DevDir, "dev.lock"))
	if err != nil {
		return nil, fmt.Errorf("lock the development directory: %w", err)
	}
	if s.named || s.Config.Source("PARLEY_LISTEN") != "" {
		return release, nil
	}
	release()
	env, err := ReadDevEnv(s.DevDir)
	if err != nil {
		return nil, err
	}
	why := "parley serve --dev runs here already"
	if env.URL != "" {
		why += ", at " + env.URL
	}
	return nil, &StartError{Why: why + ".", Do: "Use that one: source " + DevDir +
		"/dev.env. Or stop it first, or start another next to it with --listen 127.0.0.1:0."}
}
