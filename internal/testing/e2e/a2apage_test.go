package e2e_test

import (
	"bufio"
	"bytes"
	"fmt"
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

	"github.com/parley-server/parley/internal/testing/wait"
)

// eightySeven matches the answer, and no part of an id.
var eightySeven = regexp.MustCompile(`= 87\b`)

// TestA2APage runs the clients of docs/reference/a2a.md, and its receiver.
func TestA2APage(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../../docs/reference/a2a.md")
	if err != nil {
		t.Fatal(err)
	}
	port := freePort(t)
	w := newWorld(t)
	w.parley(t, "permissions", "set", "wiki_write", "ask", "--workspace", "w")
	key := w.parley(t, "keys", "create", "--workspace", "w", "--name", "example", "--scope", "a2a", "--scope", "wiki:write")
	s := w.serve(t, []string{"PARLEY_EGRESS_ALLOW=http://hook.example:" + port + "=127.0.0.1:" + port})
	ran := make(map[string]bool)
	for _, e := range example.FindAllStringSubmatch(string(page), -1) {
		language, code := e[1], e[2]
		switch {
		case strings.Contains(code, "WEBHOOK_SECRET"):
			ran["receiver"] = true
			t.Run("receiver", func(t *testing.T) { a2aReceiver(t, w, s, key, code, port) })
			continue
		case !strings.Contains(code, "PARLEY_URL"): // a command for the administrator
			continue
		}
		ran[language] = true
		t.Run(language, func(t *testing.T) {
			cmd := command(t, "a2a", language, code)
			cmd.Env = append(os.Environ(), "PARLEY_URL="+s.url, "PARLEY_API_KEY="+key)
			if out, err := cmd.CombinedOutput(); err != nil || !eightySeven.Match(out) {
				t.Errorf("%v\n%s", err, out)
			}
		})
		if language != "js" {
			continue
		}
		t.Run("a question while the stream is broken", func(t *testing.T) {
			const said = "What is 12*7+3?"
			if !strings.Contains(code, said) {
				t.Fatal("the example sends another question")
			}
			cmd := command(t, "a2a", language, strings.Replace(code, said,
				`@say I would.\n@call wiki_write {\"page\":\"x\",\"content\":\"y\"}\n@say It is = 87.`, 1))
			front, broken := unheard(t, s.url)
			cmd.Env = append(os.Environ(), "PARLEY_URL="+front, "PARLEY_API_KEY="+key)
			if out, err := cmd.CombinedOutput(); err != nil || !eightySeven.Match(out) || !bytes.Contains(out, []byte("wiki_write")) ||
				!broken.Load() {
				t.Errorf("%v, broken: %v\n%s", err, broken.Load(), out)
			}
		})
	}
	if !ran["js"] || !ran["sh"] || !ran["receiver"] {
		t.Errorf("the page has examples in %v", ran)
	}
}

// a2aReceiver lets a receiver of the page receive the notifications of a task in either version.
func a2aReceiver(t *testing.T, w *world, s *server, key, code, port string) {
	cmd := command(t, "callbacks", "js", code)
	cmd.Env = append(os.Environ(), "PORT="+port, "WEBHOOK_SECRET="+strings.TrimSpace(w.parley(t, "callbacks", "secret", "--workspace", "w")))
	said := &record{}
	cmd.Stdout, cmd.Stderr = said, said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = wait.Result(t, "the end of the receiver", cmd.Wait)
		if t.Failed() {
			t.Logf("the receiver prints: %s", said.bytes())
		}
	})
	wait.For(t, "the receiver listens", func() bool {
		res, err := brief.Post("http://127.0.0.1:"+port, "application/json", strings.NewReader("{}"))
		if err != nil {
			return false
		}
		_ = res.Body.Close()
		return res.StatusCode == http.StatusUnauthorized // the request is not signed
	})
	for _, call := range []struct{ version, method, role, conf, state string }{
		{"1.0", "SendMessage", "ROLE_USER", "taskPushNotificationConfig", "TASK_STATE_COMPLETED"},
		{"0.3", "message/send", "user", "pushNotificationConfig", " completed"},
	} {
		body := fmt.Sprintf(
			`{"jsonrpc":"2.0","id":1,"method":%q,"params":{"message":{"messageId":%q,"role":%q,"parts":[{"kind":"text","text":"@say `+
				`Hi."}]},"configuration":{%q:{"url":"http://hook.example:%s/"}}}}`,
			call.method, call.version, call.role, call.conf, port)
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url+"/a2a", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+key)
		r.Header.Set("Content-Type", "application/json")
		res, err := brief.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		wait.For(t, "the receiver hears of a task of "+call.version, func() bool { return bytes.Contains(said.bytes(), []byte(call.state)) })
	}
}

// unheard is a proxy whose first stream breaks after its first frame, when its task has asked.
func unheard(t *testing.T, server string) (address string, broken *atomic.Bool) {
	target, _ := url.Parse(server)
	broken = new(atomic.Bool)
	front := httptest.NewServer(&httputil.ReverseProxy{
		FlushInterval: -1,
		ErrorLog:      log.New(io.Discard, "", 0),
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			r.Out.Host = r.In.Host // the host of the address in the card
		},
		ModifyResponse: func(res *http.Response) error {
			if strings.HasPrefix(res.Header.Get("Content-Type"), "text/event-stream") && broken.CompareAndSwap(false, true) {
				res.Body = &untilAsked{Closer: res.Body, from: bufio.NewReader(res.Body)}
			}
			return nil
		},
	})
	t.Cleanup(func() {
		front.CloseClientConnections()
		front.Close()
	})
	return front.URL, broken
}

// untilAsked is a stream that ends after its first frame, and breaks at a question.
type untilAsked struct {
	io.Closer
	from  *bufio.Reader
	first bytes.Buffer
	heard bool
}

// Read implements io.Reader.
func (u *untilAsked) Read(p []byte) (int, error) {
	for !u.heard {
		line, err := u.from.ReadString('\n')
		if err != nil {
			return 0, err
		}
		u.first.WriteString(line)
		u.heard = line == "\n"
	}
	if u.first.Len() > 0 {
		return u.first.Read(p)
	}
	for {
		line, err := u.from.ReadString('\n')
		if err != nil {
			return 0, err
		}
		if strings.Contains(line, "INPUT_REQUIRED") {
			return 0, io.ErrUnexpectedEOF
		}
	}
}
