package egress_test

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/parley-server/parley/internal/egress"
	"github.com/parley-server/parley/internal/testing/wait"
)

// logged collects the output of the standard logger, which net/http uses for unexpected data on a
// connection.
var logged sink

type sink struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (s *sink) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

func (s *sink) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// TestWhatFollowsAnAnswerIsNotLogged makes servers send the value where no response is due: as the
// body of a response without a body, after the end of a response, and later.
func TestWhatFollowsAnAnswerIsNotLogged(t *testing.T) {
	t.Parallel()
	w := newWorld(t, egress.Config{})
	gone := make(chan struct{}, 1)
	w.hook = func(rw http.ResponseWriter, r *http.Request) {
		conn, out, err := http.NewResponseController(rw).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		head, rest, _ := strings.Cut(map[string]string{
			"/head": "200 OK\r\nContent-Length: 100\r\n\r\n%s", "/204": "204 No Content\r\n\r\n%s", "/304": "304 Not Modified\r\n\r\n%s",
			"/empty":  "200 OK\r\nContent-Length: 0\r\n\r\n%s",
			"/length": "200 OK\r\nContent-Length: 4\r\n\r\ntext%s",
			"/chunks": "200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\ntext\r\n0\r\n\r\n%s",
			"/later":  "200 OK\r\nContent-Length: 4\r\n\r\ntext|%s",
		}[r.URL.Path], "|")
		secret := r.Header.Get("Authorization")
		fmt.Fprint(out, "HTTP/1.1 ", strings.Replace(head, "%s", secret, 1))
		out.Flush()
		fmt.Fprint(out, strings.Replace(rest, "%s", secret, 1))
		out.Flush()
		_, _ = io.Copy(io.Discard, out) // until the other side has read everything and closed
		gone <- struct{}{}
	}
	for _, d := range doors(t, w.run(t, egress.RunConfig{})) {
		for _, path := range []string{"head", "204", "304", "empty", "length", "chunks", "later"} {
			method := http.MethodGet
			if path == "head" {
				method = http.MethodHead
			}
			a := d.send(t, method, "https://api.test/"+path, "", func(r *http.Request) { r.Header.Set("Authorization", holder) })
			if a.err != nil || a.status >= 400 || a.body != "" && a.body != "text" {
				t.Errorf("%s %s: %s", d.name, path, a.text())
			}
			wait.Receive(t, "the end of the connection", gone)
			hidden(t, logged.String())
		}
	}
}

// TestNothingIsReadBeforeTheRequest checks that a server cannot send first and echo data from
// another connection: net/http would log it.
func TestNothingIsReadBeforeTheRequest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for _, asked := range []bool{true, false} {
			inside, server := net.Pipe()
			c := egress.Silent(inside)
			go func() { _, _ = io.WriteString(server, value) }()
			got := make(chan string, 1)
			go func() {
				buf := make([]byte, len(value))
				n, _ := io.ReadFull(c, buf)
				got <- string(buf[:n])
			}()
			synctest.Wait()
			select {
			case text := <-got:
				t.Fatalf("%q was read before a request", text)
			default:
			}
			want := ""
			if asked {
				want = value
				go func() { _, _ = io.ReadFull(server, make([]byte, 1)) }()
				if _, err := c.Write([]byte("G")); err != nil {
					t.Fatal(err)
				}
			} else {
				c.Close()
			}
			if text := wait.Receive(t, "a result", got); text != want {
				t.Errorf("request sent %t: %q was read", asked, text)
			}
			c.Close()
			server.Close()
		}
	})
}
