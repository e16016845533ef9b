package e2e_test

import (
	"bufio"
	"bytes"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/parley-server/parley/internal/testing/wait"
)

// exampleRun is an example of a page that reads a stream itself.
type exampleRun struct{ about, language, code string }

func (x exampleRun) run(t *testing.T, url, key string) (out, errs string, err error) {
	t.Helper()
	cmd := command(t, x.about, x.language, x.code)
	cmd.Env = append(os.Environ(), "PARLEY_URL="+url, "PARLEY_API_KEY="+key)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err = cmd.Run()
	return stdout.String(), stderr.String(), err
}

// says returns the example with another message.
func (x exampleRun) says(command string) exampleRun {
	x.code = strings.ReplaceAll(x.code, "What is 12*7+3?", command)
	return x
}

// fails checks that an example prints the reason of a rejected request and of a failed turn, and
// exits.
func (x exampleRun) fails(t *testing.T, url, key string) {
	if out, errs, err := x.run(t, url, "prl_wrong"); err == nil || !strings.Contains(errs, "INVALID_API_KEY") {
		t.Errorf("with a wrong key: %v\n%s%s", err, out, errs)
	}
	const why = "The script asked for this failure."
	if out, errs, err := x.says(`@say Half.\n@error model_error`).run(t, url, key); err == nil || !strings.Contains(out, "Half.") ||
		!strings.Contains(errs, why) {
		t.Errorf("a turn that fails: %v\n%s%s", err, out, errs)
	}
}

var answering = regexp.MustCompile(`parley approvals (?:show|allow) ([0-9a-f-]{36})`)

// isAsked checks that an example prints how to answer the agent's question, and continues after the
// answer.
func (x exampleRun) isAsked(t *testing.T, url, key string) {
	cmd := command(t, x.about, x.language, x.says("Ask me for an approval").code)
	cmd.Env = append(os.Environ(), "PARLEY_URL="+url, "PARLEY_API_KEY="+key)
	var out bytes.Buffer
	cmd.Stdout = &out
	errs, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	asked := false
	for lines := bufio.NewScanner(errs); lines.Scan(); {
		found := answering.FindStringSubmatch(lines.Text())
		if found == nil {
			t.Log(lines.Text())
			continue
		}
		asked = true
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/api/workspaces/demo/approvals/"+found[1]+"/decide",
			strings.NewReader(`{"decision":"allow"}`))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+key)
		req.Header.Set("Content-Type", "application/json")
		res, err := brief.Do(req)
		if err != nil || res.StatusCode != http.StatusOK {
			t.Fatal(res, err)
		}
		_ = res.Body.Close()
	}
	if err := wait.Result(t, "the end of the client", cmd.Wait); err != nil || !asked || !strings.Contains(out.String(),
		"The call went through.") {
		t.Errorf("asked %v, %v\n%s", asked, err, out.String())
	}
}

// isCutOff checks that an example prints every piece of the answer once, although its connection
// breaks, a retry is rejected with Retry-After, and another connection falls silent.
func (x exampleRun) isCutOff(t *testing.T, w *world, url, key string) {
	x = x.says(`@unicode\n@say That makes 87.`)
	patient := x.code
	x.code = strings.NewReplacer("60_000", "1000", "timeout=60", "timeout=1", "time.Minute", "time.Second").Replace(x.code)
	front, m := mean(t, url, x.code != patient)
	out, errs, err := x.run(t, front, key)
	var want string
	if err := w.pool.QueryRow(t.Context(),
		`SELECT content FROM messages WHERE role = 'assistant' AND content LIKE '%That makes 87.' LIMIT 1`).Scan(&want); err != nil {
		t.Fatal(err)
	}
	if err != nil || out != want {
		t.Errorf("it prints %v\n%q, want\n%q\n%s", err, out, want, errs)
	}
	if m.cuts.Load() != 1 || m.away.asked.Load() != 1 {
		t.Errorf("cut off %d times, and %d requests to an unavailable server", m.cuts.Load(), m.away.asked.Load())
	}
	if !strings.Contains(errs, "CONCURRENCY_LIMIT") || !strings.Contains(errs, "Away until then.") {
		t.Errorf("it does not print what failed:\n%s", errs)
	}
}

// meanness counts the faults of an address.
type meanness struct {
	cuts, again atomic.Int32
	away        away
	hung        atomic.Bool
}

// away is a server that is unavailable for one second. Its Retry-After is a date in the far future,
// as a proxy may send it; a client that retries with its usual delay sends one request.
type away struct {
	since atomic.Pointer[time.Time]
	asked atomic.Int32
}

// answers reports whether the server is available.
func (a *away) answers(rw http.ResponseWriter) bool {
	a.since.CompareAndSwap(nil, new(time.Now()))
	if time.Since(*a.since.Load()) > time.Second {
		return true
	}
	a.asked.Add(1)
	rw.Header().Set("Retry-After", "Wed, 21 Oct 2099 07:28:00 GMT")
	http.Error(rw, "Away until then.", http.StatusServiceUnavailable)
	return false
}

// mean is a proxy in front of a server. It cuts a stream off in the middle of its first text. The
// first request that resumes it exceeds a limit, the next finds the server unavailable, and a
// third, if hangs is set, gets a stream that never ends.
func mean(t *testing.T, server string, hangs bool) (string, *meanness) {
	target, _ := url.Parse(server)
	m := new(meanness)
	proxy := &httputil.ReverseProxy{
		FlushInterval: -1,
		ErrorLog:      log.New(io.Discard, "", 0),
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(target) },
		ModifyResponse: func(res *http.Response) error {
			if res.Request.Header.Get("Last-Event-ID") == "" {
				res.Body = &untilText{res.Body, bufio.NewReader(res.Body), "", &m.cuts}
			}
			return nil
		},
	}
	front := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Last-Event-ID") == "" {
			proxy.ServeHTTP(rw, r)
			return
		}
		switch {
		case m.again.Add(1) == 1:
			rw.Header().Set("Retry-After", "1")
			http.Error(rw, `{"error":{"code":"CONCURRENCY_LIMIT"}}`, http.StatusTooManyRequests)
		case !m.away.answers(rw):
		case hangs && m.hung.CompareAndSwap(false, true):
			_, _ = io.Copy(io.Discard, r.Body) // otherwise the server would not notice that the client has left
			rw.Header().Set("Content-Type", "text/event-stream")
			_, _ = rw.Write([]byte(": ping\n"))
			_ = http.NewResponseController(rw).Flush()
			<-r.Context().Done()
		default:
			proxy.ServeHTTP(rw, r)
		}
	}))
	t.Cleanup(func() {
		front.CloseClientConnections()
		front.Close()
	})
	return front.URL, m
}

// untilText is a body that breaks after the start of a text.
type untilText struct {
	io.Closer
	from *bufio.Reader
	line string
	cuts *atomic.Int32
}

// Read implements io.Reader.
func (u *untilText) Read(p []byte) (int, error) {
	b, err := u.from.ReadByte()
	if err != nil {
		return 0, err
	}
	p[0], u.line = b, u.line+string(b)
	switch {
	case strings.HasSuffix(u.line, `{"v":1,"text":"`):
		u.cuts.Add(1)
		return 1, io.ErrUnexpectedEOF
	case b == '\n':
		u.line = ""
	}
	return 1, nil
}
