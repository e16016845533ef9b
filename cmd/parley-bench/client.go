package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/parley-server/parley/internal/sse"
)

// client opens streams, each on a connection of its own. It does the minimum of work, since it
// shares the machine with the server.
type client struct {
	host      string
	workspace string
	key       string
}

func newClient(address, workspace, key string) (*client, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, err
	}
	return &client{host: u.Host, workspace: workspace, key: key}, nil
}

// connection is one open stream.
type connection struct {
	*sse.Reader
	net.Conn
	stop func() bool
}

func (c *connection) Close() error {
	c.stop()
	return c.Conn.Close()
}

// send starts a turn.
func (c *client) send(ctx context.Context, command string) (*connection, error) {
	body, err := json.Marshal(map[string]string{"command": command})
	if err != nil {
		return nil, err
	}
	return c.open(ctx, "POST", "messages", "Content-Type: application/json\r\n", string(body))
}

// resume continues to read a session after a cursor.
func (c *client) resume(ctx context.Context, session, cursor string) (*connection, error) {
	return c.open(ctx, "GET", "sessions/"+session+"/events?replay=all", "Last-Event-ID: "+cursor+"\r\n", "")
}

// statusError is a response other than a stream.
type statusError struct {
	code int
	text string
}

func (e *statusError) Error() string { return e.text }

// patience is how long the client waits for a byte before a stream counts as dead.
const patience = 60 * time.Second

func (c *client) open(ctx context.Context, method, path, headers, body string) (*connection, error) {
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "tcp", c.host)
	if err != nil {
		return nil, err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s /api/v1/workspaces/%s/%s HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\nAccept: text/event-stream, "+
		"application/json\r\n%s",
		method, c.workspace, path, c.host, c.key, headers)
	if body != "" {
		fmt.Fprintf(&b, "Content-Length: %d\r\n", len(body))
	}
	b.WriteString("\r\n")
	b.WriteString(body)
	s := &connection{Conn: conn, stop: context.AfterFunc(ctx, func() { conn.Close() })}
	fail := func(err error) (*connection, error) {
		s.Close()
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return nil, err
	}
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		return fail(err)
	}
	if _, err := io.WriteString(conn, b.String()); err != nil {
		return fail(fmt.Errorf("send a request: %w", err))
	}
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return fail(fmt.Errorf("read an answer: %w", err))
	}
	if res.StatusCode != http.StatusOK || !strings.HasPrefix(res.Header.Get("Content-Type"), "text/event-stream") {
		text, _ := io.ReadAll(io.LimitReader(res.Body, 1000))
		return fail(&statusError{code: res.StatusCode, text: fmt.Sprintf("%s %s: %s: %s", method, path, res.Status, text)})
	}
	s.Reader = sse.NewReader(res.Body)
	return s, nil
}
