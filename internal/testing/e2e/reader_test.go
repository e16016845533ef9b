package e2e_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/parley-server/parley/internal/testing/slow"
	"github.com/parley-server/parley/internal/testing/wait"
)

// TestReaderThatNeverReads opens connections and never reads from them. They use bounded memory,
// slow no other reader down and are dropped; a reader that reads gets everything.
func TestReaderThatNeverReads(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.serve(t, []string{"PARLEY_SSE_WRITE_TIMEOUT=2s", "GOMEMLIMIT=150MiB"})      // so that garbage does not count
	session, _ := w.start(t, s, "@wait 1s\n@text 1000 deltas of 16000 bytes at 300/s") // 16 MB
	const deaf = 8
	gone := make(chan error, deaf)
	for range deaf {
		conn, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		_ = conn.(*net.TCPConn).SetReadBuffer(4096)
		fmt.Fprintf(conn, "GET /api/v1/workspaces/w/sessions/%s/events HTTP/1.1\r\nHost: parley\r\nAuthorization: Bearer %s\r\n\r\n",
			session, w.key)
		if line, err := bufio.NewReaderSize(conn, 16).ReadString('\n'); err != nil || !strings.Contains(line, "200") {
			t.Fatalf("attach: %q, %v", line, err)
		}
		go func() { gone <- hungUp(conn) }()
	}
	frames, err := w.follow(t.Context(), session, "", nil, s)
	if err != nil {
		t.Fatal(err)
	}
	if got := len(text(frames)); got != 1000*16000 {
		t.Errorf("the reader that reads got %d bytes, want %d", got, 1000*16000)
	}
	for range deaf {
		if err := wait.Receive(t, "the end of the connection", gone); err != nil {
			t.Errorf("a reader that never reads: %v", err)
		}
	}
	if peak := peakMemory(t, s); peak > 300<<20 && !slow.Race {
		t.Errorf("the server needed %d MB", peak>>20)
	} else {
		t.Logf("peak memory of the server %d MB, with %d deaf readers of 16 MB each", peak>>20, deaf)
	}
}

// hungUp waits, without reading the stream, until the server has closed the connection: then writes
// to it fail.
func hungUp(conn net.Conn) error {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for range 1200 {
		<-tick.C
		if _, err := conn.Write([]byte(" ")); err != nil {
			return nil
		}
	}
	return errors.New("it was never dropped")
}

// peakMemory returns the maximum memory of a process.
func peakMemory(t *testing.T, s *server) int64 {
	t.Helper()
	f, err := os.Open(fmt.Sprintf("/proc/%d/status", s.cmd.Process.Pid))
	if err != nil {
		return 0 // not on Linux: the rest of the test applies
	}
	defer f.Close()
	data, err := io.ReadAll(f)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kb, _ := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
			return kb << 10
		}
	}
	return 0
}
