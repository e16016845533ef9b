package dbtest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/parley-server/parley/internal/devdb"
)

// Variable names the server for tests.
const Variable = "TEST_DATABASE_URL"

// find searches once per process and keeps the result until the process ends.
var find = sync.OnceValues(func() (found, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	dsn, release, err := Find(ctx)
	return found{dsn, release}, err
})

// found is a server. Keeping release keeps a container's pipe, which the garbage collector would
// close.
type found struct {
	dsn     string
	release func()
}

// Find returns the DSN of a server for databases: TEST_DATABASE_URL, else a container, else the
// private one. Release ends its use; so does the end of the process.
func Find(ctx context.Context) (dsn string, release func(), err error) {
	if dsn := os.Getenv(Variable); dsn != "" {
		return dsn, func() {}, nil
	}
	dsn, release, docker := startContainer(ctx)
	if docker == nil {
		return dsn, release, nil
	}
	s, err := shared(ctx)
	if err != nil {
		return "", nil, fmt.Errorf("%w (Docker: %w; or set %s)", err, docker, Variable)
	}
	return s.DSN(""), func() { s.Stop(context.WithoutCancel(ctx)) }, nil
}

// shared joins or starts the private server of this user's tests. It ends by itself a while after
// the last process that uses it.
func shared(ctx context.Context) (*devdb.Server, error) {
	dir := memoryDir()
	if dir == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			cache = filepath.Join(os.TempDir(), fmt.Sprintf("parley-%d", os.Getuid()))
		}
		dir = filepath.Join(cache, "parley")
	}
	return devdb.Start(ctx, devdb.Options{
		Dir:        filepath.Join(dir, "testdb"),
		Disposable: true,
		Linger:     time.Minute,
		Settings:   map[string]string{"max_connections": "500"},
	})
}
