package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"time"
)

// child is a server of the bench, seen from the parent.
type child struct {
	URL string

	cmd    *exec.Cmd
	in     io.WriteCloser
	out    *bufio.Scanner
	stderr *tailBuffer
}

// spawnServer runs this binary again as a server and waits until it serves.
func spawnServer(ctx context.Context, t task) (*child, error) {
	self := "/proc/self/exe" // works after a rebuild has replaced the file
	if runtime.GOOS != "linux" {
		var err error
		if self, err = os.Executable(); err != nil {
			return nil, err
		}
	}
	c := &child{cmd: exec.Command(self), stderr: &tailBuffer{}}
	c.cmd.Args = []string{serverName}
	c.cmd.Stderr = c.stderr
	var err error
	if c.in, err = c.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	c.out = bufio.NewScanner(out)
	if err := c.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start a server: %w", err)
	}
	stop := context.AfterFunc(ctx, func() { _ = c.cmd.Process.Kill() })
	defer stop()
	line, err := c.ask(t)
	if err != nil {
		return nil, errors.Join(err, c.stop())
	}
	c.URL = line.URL
	return c, nil
}

// ask writes a line and reads the response.
func (c *child) ask(question any) (serverLine, error) {
	text, err := json.Marshal(question)
	if s, ok := question.(string); ok {
		text = []byte(s)
	}
	if err == nil {
		_, err = c.in.Write(append(text, '\n'))
	}
	if err != nil {
		return serverLine{}, fmt.Errorf("ask a server: %w\n%s", err, c.stderr)
	}
	if !c.out.Scan() {
		return serverLine{}, fmt.Errorf("a server has died: %w\n%s", cmpErr(c.out.Err(), io.EOF), c.stderr)
	}
	var line serverLine
	if err := json.Unmarshal(c.out.Bytes(), &line); err != nil {
		return serverLine{}, fmt.Errorf("read a server's answer: %w", err)
	}
	if line.Error != "" {
		return serverLine{}, fmt.Errorf("a server has failed: %s\n%s", line.Error, c.stderr)
	}
	return line, nil
}

func cmpErr(err, otherwise error) error {
	if err != nil {
		return err
	}
	return otherwise
}

// stop ends the server in order, or at once if that takes too long.
func (c *child) stop() error {
	c.in.Close()
	kill := time.AfterFunc(20*time.Second, func() { _ = c.cmd.Process.Kill() })
	defer kill.Stop()
	for c.out.Scan() {
	}
	if err := c.cmd.Wait(); err != nil {
		return fmt.Errorf("a server did not stop well: %w\n%s", err, c.stderr)
	}
	return nil
}

// tailBuffer stores the end of a server's stderr.
type tailBuffer struct {
	mu  sync.Mutex
	buf []byte
}

const tailLimit = 4 << 10

func (b *tailBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.buf = append(b.buf, p...)
	if over := len(b.buf) - tailLimit; over > 0 {
		b.buf = bytes.Clone(b.buf[over:])
	}
	return len(p), nil
}

func (b *tailBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return strings.TrimSpace(string(b.buf))
}
