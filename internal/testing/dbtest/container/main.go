// Container runs PostgreSQL in Docker for as long as its standard input stays open, and prints its
// DSN. It is a separate program so that no test binary has to link Docker's client, and so that the
// container ends when the tests are killed. If Docker or an image is missing, it prints that and
// ends.
package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/ory/dockertest/v3"
	"github.com/ory/dockertest/v3/docker"
)

// lifetime ends the container if its parent cannot.
const lifetime = time.Hour

func main() {
	if err := run(); err != nil {
		fmt.Println(err) // on stdout, in place of the DSN
		os.Exit(1)
	}
}

func run() (err error) {
	pool, err := dockertest.NewPool("")
	if err != nil {
		return err
	}
	if err := pool.Client.Ping(); err != nil {
		return err
	}
	tag, err := image(pool)
	if err != nil {
		return err
	}
	password := rand.Text()
	resource, err := pool.RunWithOptions(&dockertest.RunOptions{
		Repository:   "postgres",
		Tag:          tag,
		Env:          []string{"POSTGRES_USER=parley", "POSTGRES_DB=postgres", "POSTGRES_PASSWORD=" + password},
		Cmd:          []string{"postgres", "-c", "fsync=off", "-c", "full_page_writes=off", "-c", "max_connections=500"},
		Labels:       map[string]string{"parley": "test"},
		PortBindings: map[docker.Port][]docker.PortBinding{"5432/tcp": {{HostIP: "127.0.0.1", HostPort: "0"}}},
	}, func(host *docker.HostConfig) { host.AutoRemove = true })
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, pool.Purge(resource)) }()
	if err := resource.Expire(uint(lifetime.Seconds())); err != nil {
		return err
	}
	at := url.URL{Scheme: "postgres", User: url.UserPassword("parley", password), Host: resource.GetHostPort("5432/tcp"), Path: "/postgres"}
	if err := pool.Retry(func() error { return ping(at.String()) }); err != nil {
		return err
	}
	fmt.Println(at.String())
	io.Copy(io.Discard, os.Stdin)
	return nil
}

func ping(dsn string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return err
	}
	return conn.Close(ctx)
}

// image returns the newest tag of the official image on this machine. Tests download nothing.
func image(pool *dockertest.Pool) (string, error) {
	images, err := pool.Client.ListImages(docker.ListImagesOptions{Filters: map[string][]string{"reference": {"postgres"}}})
	if err != nil {
		return "", err
	}
	best, newest := "", 14 // older versions do not support our schema
	for _, image := range images {
		for _, name := range image.RepoTags {
			tag, ok := strings.CutPrefix(name, "postgres:")
			digits := strings.IndexFunc(tag+".", func(r rune) bool { return r < '0' || r > '9' })
			major, err := strconv.Atoi(tag[:digits])
			if ok && err == nil && major > newest {
				best, newest = tag, major
			}
		}
	}
	if best == "" {
		return "", errors.New("no image postgres:15 or newer; `docker pull postgres:17` to use Docker")
	}
	return best, nil
}
