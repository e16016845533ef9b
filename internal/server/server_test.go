package server

import (
	"net/http"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestEveryAnswerHasADeadline checks that every response sets the deadline: that of an earlier
// stream on the connection may have passed.
func TestEveryAnswerHasADeadline(t *testing.T) {
	t.Parallel()
	for name, write := range map[string]func(http.ResponseWriter){
		"header": func(w http.ResponseWriter) { w.WriteHeader(204) },
		"body":   func(w http.ResponseWriter) { _, _ = w.Write([]byte("x")) },
	} {
		conn := &connection{}
		a := &answer{ResponseWriter: conn, timeout: time.Hour}
		write(a)
		if left := time.Until(conn.deadline); left < 59*time.Minute || left > time.Hour || a.status == 0 {
			t.Errorf("%s: %v left, status %d", name, left, a.status)
		}
	}
}

// connection is a response that records its deadline.
type connection struct{ deadline time.Time }

func (c *connection) SetWriteDeadline(t time.Time) error { c.deadline = t; return nil }
func (c *connection) Header() http.Header                { return http.Header{} }
func (c *connection) Write(p []byte) (int, error)        { return len(p), nil }
func (c *connection) WriteHeader(int)                    {}
