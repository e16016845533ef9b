package dbtest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// startContainer runs PostgreSQL in Docker until release or the end of this process. It uses the
// program of the module container/, which keeps Docker's client out of this module.
func startContainer(ctx context.Context) (dsn string, release func(), err error) {
	if err := dockerListens(); err != nil {
		return "", nil, err
	}
	cmd, err := containerCommand(ctx)
	if err != nil {
		return "", nil, err
	}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return "", nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return "", nil, err
	}
	var stderr strings.Builder
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		return "", nil, err
	}
	stop := context.AfterFunc(ctx, func() { stdin.Close(); stdout.Close() }) // the program ends with its stdin
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if stop() && err == nil && strings.HasPrefix(line, "postgres://") {
		return strings.TrimSpace(line), func() { stdin.Close(); _ = cmd.Wait() }, nil
	}
	stdin.Close()
	err = cmd.Wait()
	return "", nil, errors.Join(errors.New(strings.TrimSpace(line+stderr.String())), err, ctx.Err())
}

// containerCommand returns the command that runs the program of the module container/ with `go
// run`.
func containerCommand(ctx context.Context) (*exec.Cmd, error) {
	const self = "github.com/parley-server/parley/internal/testing/dbtest"
	dir, err := exec.CommandContext(ctx, "go", "list", "-f", "{{.Dir}}", self).Output()
	if err != nil {
		return nil, fmt.Errorf("find the source of %s: %w", self, err)
	}
	cmd := exec.Command("go", "run", ".")
	cmd.Dir = filepath.Join(strings.TrimSpace(string(dir)), "container")
	cmd.Env = append(os.Environ(), "GOWORK=off")
	cmd.WaitDelay = 10 * time.Second
	return cmd, nil
}

// dockerListens avoids starting a program on machines without Docker.
func dockerListens() error {
	host := os.Getenv("DOCKER_HOST")
	if host == "" {
		host = "unix:///var/run/docker.sock"
	}
	u, err := url.Parse(host)
	if err != nil {
		return err
	}
	network, address := u.Scheme, u.Host
	if network == "unix" {
		address = u.Path
	} else {
		network = "tcp"
	}
	conn, err := net.DialTimeout(network, address, time.Second)
	if err != nil {
		return err
	}
	return conn.Close()
}
