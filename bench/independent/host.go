package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// host starts a binary with serve --dev in a directory of its own. PostgreSQL and its data persist
// between starts.
type host struct {
	binary   string
	dir      string
	settings string // settings of PostgreSQL, as a sentence
	knows    map[string]bool
	running  int // default max_running of a workspace

	site site
	cmd  *exec.Cmd
	out  *bytes.Buffer
	done chan error
}

// room are the limits of the key under load, set with the command for it. They remain enabled, so
// each request is counted as in production; they are only high enough for one key to send
// everything.
var room = []string{"--messages-per-minute", "1000000", "--calls-per-minute", "1000000", "--open-streams", "1000000"}

// busyByDefault is the number of turns that run at once with default settings: the smaller one of
// PARLEY_WORKERS and a workspace's max_running.
const busyByDefault = 64

func newHost(binary string) (*host, error) {
	binary, err := filepath.Abs(binary)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("/var/tmp", "independent-")
	if err != nil {
		return nil, err
	}
	h := &host{binary: binary, dir: dir, knows: map[string]bool{}}
	if err := h.prepare(); err != nil {
		h.remove()
		return nil, fmt.Errorf("%s: %w", binary, err)
	}
	return h, nil
}

// prepare creates the database and sets the limits of the key.
func (h *host) prepare() error {
	if err := os.Chmod(h.dir, 0o755); err != nil { // PostgreSQL may run as another user
		return err
	}
	var config struct{ Data []struct{ Name string } }
	if err := h.json(&config, "config", "print", "--json"); err != nil {
		return err
	}
	for _, s := range config.Data {
		h.knows[s.Name] = true
	}
	if err := h.start(0); err != nil {
		return err
	}
	defer h.stop()
	if _, err := h.command(append([]string{"workspace", "update", h.site.Workspace}, room...)...); err != nil {
		return err
	}
	var list struct {
		Data []struct {
			Slug       string
			MaxRunning int `json:"max_running"`
		}
	}
	if err := h.json(&list, "workspace", "list", "--json"); err != nil {
		return err
	}
	for _, w := range list.Data {
		if w.Slug == h.site.Workspace {
			h.running = w.MaxRunning
		}
	}
	var err error
	h.settings, err = describe(h.site.Database)
	return err
}

// start starts the server with enough workers for the turns that run at once; 0 keeps every
// default.
func (h *host) start(running int) error {
	port, err := freePort()
	if err != nil {
		return err
	}
	h.out, h.done = &bytes.Buffer{}, make(chan error, 1)
	h.cmd = exec.Command(h.binary, "serve", "--dev", "--listen", "127.0.0.1:"+port)
	h.cmd.Dir, h.cmd.Env = h.dir, h.environment()
	if running > busyByDefault {
		workers := max(running*4/3+1, 100) // a workspace gets three of four places
		h.cmd.Env = append(h.cmd.Env, fmt.Sprintf("PARLEY_WORKERS=%d", workers))
		if h.knows["PARLEY_MODEL_CALLS"] {
			h.cmd.Env = append(h.cmd.Env, fmt.Sprintf("PARLEY_MODEL_CALLS=%d", workers))
		}
	}
	out, err := h.cmd.StdoutPipe()
	if err != nil {
		return err
	}
	h.cmd.Stderr = h.cmd.Stdout
	if err := h.cmd.Start(); err != nil {
		return err
	}
	ready := make(chan bool, 1)
	go h.listen(out, ready)
	select {
	case ok := <-ready:
		if !ok {
			return fmt.Errorf("the server stopped: %w\n%s", <-h.done, h.out)
		}
	case <-time.After(time.Minute):
		h.stop()
		return fmt.Errorf("the server is not ready after a minute\n%s", h.out)
	}
	return h.readEnvironment(port, running)
}

// listen reads the server's output to its end.
func (h *host) listen(out io.Reader, ready chan<- bool) {
	told := false
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if h.out.Len() < 8<<10 {
			fmt.Fprintln(h.out, lines.Text())
		}
		if !told && strings.Contains(lines.Text(), "ready in") {
			told = true
			ready <- true
		}
	}
	if !told {
		ready <- false
	}
	h.done <- h.cmd.Wait()
}

// readEnvironment reads the key and the database from dev.env, and sets max_running.
func (h *host) readEnvironment(port string, running int) error {
	text, err := os.ReadFile(filepath.Join(h.dir, ".parley", "dev.env"))
	if err != nil {
		return err
	}
	h.site = site{URL: "http://127.0.0.1:" + port, Workspace: "demo"}
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(strings.TrimPrefix(strings.TrimSpace(line), "export "), "=")
		value = strings.Trim(value, `'"`)
		switch name {
		case "PARLEY_API_KEY":
			h.site.Key = value
		case "PARLEY_DATABASE_URL":
			h.site.Database = value
		}
	}
	if h.running == 0 {
		return nil
	}
	_, err = h.command("workspace", "update", h.site.Workspace, "--max-running", strconv.Itoa(max(h.running, running)))
	return err
}

// stop ends the server and PostgreSQL.
func (h *host) stop() {
	if h.cmd == nil {
		return
	}
	h.cmd.Process.Signal(syscall.SIGTERM)
	kill := time.AfterFunc(40*time.Second, func() { h.cmd.Process.Kill() })
	<-h.done
	kill.Stop()
	h.cmd = nil
}

func (h *host) remove() {
	h.stop()
	os.RemoveAll(h.dir)
}

// environment returns this process's environment without settings of the product.
func (h *host) environment() []string {
	env := []string{"HOME=" + h.dir}
	for _, v := range os.Environ() {
		name, _, _ := strings.Cut(v, "=")
		if !strings.HasPrefix(name, "PARLEY_") && name != "DATABASE_URL" && name != "HOME" {
			env = append(env, v)
		}
	}
	return env
}

// command runs the binary beside its server, as an administrator does.
func (h *host) command(args ...string) ([]byte, error) {
	cmd := exec.Command(h.binary, args...)
	cmd.Dir, cmd.Env = h.dir, append(h.environment(), "PARLEY_DATABASE_URL="+h.site.Database)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("%s: %w: %s", strings.Join(args, " "), err, &stderr)
	}
	return out, err
}

func (h *host) json(v any, args ...string) error {
	out, err := h.command(args...)
	if err != nil {
		return err
	}
	return json.Unmarshal(out, v)
}

func freePort() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	_, port, err := net.SplitHostPort(l.Addr().String())
	return port, err
}
