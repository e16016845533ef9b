package dbtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/parley-server/parley/internal/devdb"
)

// Variable names the server that tests use when it is set.
const Variable = "TEST_DATABASE_URL"

// find looks once per process.
var find = sync.OnceValues(func() (string, error) {
	if dsn := os.Getenv(Variable); dsn != "" {
		return dsn, nil
	}
	dsn, docker := container()
	if docker == nil {
		return dsn, nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	s, err := Shared(ctx)
	if err != nil {
		return "", fmt.Errorf("%w (Docker: %w; or set %s)", err, docker, Variable)
	}
	return s.DSN(""), nil
})

// Shared joins or starts the private server of this user's tests. It ends by
// itself a while after the last process that uses it.
func Shared(ctx context.Context) (*devdb.Server, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = filepath.Join(os.TempDir(), fmt.Sprintf("parley-%d", os.Getuid()))
	}
	return devdb.Start(ctx, devdb.Options{
		Dir:        filepath.Join(cache, "parley", "testdb"),
		Disposable: true,
		Linger:     time.Minute,
		Settings:   map[string]string{"max_connections": "300"},
	})
}

func container() (string, error) { return "", errors.New("not asked") }
