package e2e_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-server/parley/internal/testing/need"
	"github.com/parley-server/parley/internal/testing/slow"

	"github.com/parley-server/parley/internal/testing/wait"
)

// lines reads a stream in Python line by line, as httpx-sse and sseclient do, and writes each frame
// when it is complete.
const lines = `
import json, sys, urllib.request
url, key, body = sys.argv[1:]
headers = {"Authorization": "Bearer " + key, "Content-Type": "application/json"}
frame = {}
with urllib.request.urlopen(urllib.request.Request(url, data=body.encode(), headers=headers)) as stream:
    for line in stream:
        line = line.decode()
        assert line.endswith("\n") and "\r" not in line and line.splitlines(True) == [line], repr(line)
        if line == "\n":
            print(json.dumps(frame), flush=True)
            frame = {}
        elif not line.startswith(":"):
            name, value = line[:-1].split(": ", 1)
            assert name not in frame, repr(line)
            frame[name] = value
`

// TestLineReaders lets curl and Python read a turn that waits for an approval. They receive the
// question before the answer, so nothing holds frames back, and every line of the stream ends with
// LF alone, in the documented order.
func TestLineReaders(t *testing.T) {
	t.Parallel()
	slow.Test(t, "runs processes")
	w := newWorld(t)
	w.approver(t) // before the readers run at the same time
	s := w.serve(t, nil)
	url := s.url + "/api/v1/workspaces/w/messages"
	ask := `{"command":"@unicode\n@call wiki_write {\"page\":\"travel\",\"content\":\"Trains first.\"}\n@say Done."}`
	for name, reader := range map[string]struct {
		line []string
		next func(*bufio.Reader) (map[string]string, error)
	}{
		"curl": {[]string{"curl", "-sSN", "-H", "Authorization: Bearer " + w.key, "-H", "Content-Type: application/json", "-d", ask,
			url}, rawFrame},
		"python3": {[]string{"python3", "-c", lines, url, w.key, ask}, func(r *bufio.Reader) (frame map[string]string, err error) {
			line, err := r.ReadBytes('\n')
			if err != nil {
				return nil, err
			}
			return frame, json.Unmarshal(line, &frame)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := exec.LookPath(name); err != nil {
				need.Missing(t, "no %s", name)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			cmd := exec.CommandContext(ctx, reader.line[0], reader.line[1:]...)
			cmd.Stderr = t.Output()
			pipe, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			var got []frame
			var session, question string
			for out := bufio.NewReader(pipe); ; {
				f, err := reader.next(out)
				if err == io.EOF {
					break
				} else if err != nil {
					t.Fatalf("after %d frames: %v", len(got), err)
				}
				var data struct {
					SessionID string `json:"session_id"`
					DecideURL string `json:"decide_url"`
				}
				if err := json.Unmarshal([]byte(f["data"]), &data); err != nil {
					t.Fatalf("%s: %v", f["data"], err)
				}
				switch f["event"] {
				case "open":
					session = data.SessionID
					continue
				case "input_required": // not answered yet
					question = data.DecideURL
					res, body := w.do(t, w.decision(t, s, question, "allow"))
					if res.StatusCode != http.StatusOK {
						t.Fatalf("%s %s", res.Status, body)
					}
				case "done":
					f["data"] = ""
				}
				got = append(got, frame{ID: f["id"], Event: f["event"], Data: f["data"]})
			}
			if err := wait.Result(t, "the end of the client", cmd.Wait); err != nil {
				t.Error(err)
			}
			if question == "" {
				t.Fatalf("it was never asked, after %d frames", len(got))
			}
			if diff := cmp.Diff(w.table(t, session), got); diff != "" {
				t.Errorf("the frames of %s differ from the table (-table +%[1]s):\n%.2000s", name, diff)
			}
		})
	}
}

var inOrder = regexp.MustCompile(`^(?:retry: \d+\n)?event: (\w+)\nid: (\d+)\ndata: ([^\r\n]+)\n\n$`)

// rawFrame reads a frame as it is sent.
func rawFrame(r *bufio.Reader) (map[string]string, error) {
	var raw strings.Builder
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			return nil, err
		}
		if line == ": ping\n" && raw.Len() == 0 {
			continue
		}
		if raw.WriteString(line); line != "\n" {
			continue
		}
		f := inOrder.FindStringSubmatch(raw.String())
		if f == nil {
			return nil, fmt.Errorf("%q is no frame", raw.String())
		}
		return map[string]string{"event": f[1], "id": f[2], "data": f[3]}, nil
	}
}

// TestLinesAreWholeAtEveryDoor checks that readers based on str.splitlines receive whole frames of
// every protocol.
func TestLinesAreWholeAtEveryDoor(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.key = w.parley(t, "keys", "create", "--workspace", "w", "--name", "doors", "--scope", "chat", "--scope", "a2a")
	s := w.serve(t, nil)
	say := `"@unicode\n@structured {\"s\":\"a` + "\u0085\u2028" + `b\"}"`
	for path, body := range map[string]string{
		"/api/v1/workspaces/w/messages": `{"command":` + say + `,"response_schema":{"type":"object"}}`,
		"/openai/v1/chat/completions":   `{"model":"w","stream":true,"messages":[{"role":"user","content":` + say + `}]}`,
		"/openai/v1/responses":          `{"model":"w","stream":true,"input":` + say + `}`,
		"/api/v1/workspaces/w/ui/chat": `{"id":"c","messages":[{"id":"1","role":"user","parts":[{"type":"text","text":` + say +
			`}]}],"response_schema":{"type":"object"}}`,
		"/api/v1/workspaces/w/ag-ui": `{"threadId":"t","runId":"r","messages":[{"id":"1","role":"user","content":` + say +
			`}],"forwardedProps":{"response_schema":{"type":"object"}}}`,
		"/a2a": `{"jsonrpc":"2.0","id":1,"method":"SendStreamingMessage","params":{"message":{"messageId":"1",` +
			`"role":"ROLE_USER","parts":[{"text":` + say + `}]}}}`,
	} {
		t.Run(path, func(t *testing.T) {
			res, got := w.do(t, s.post(path, json.RawMessage(body)))
			if res.StatusCode != http.StatusOK || !strings.Contains(string(got), "paragraph") {
				t.Fatalf("%s %s", res.Status, got)
			}
			for _, end := range []string{"\r", "\u0085", "\u2028", "\u2029"} {
				if at := strings.Index(string(got), end); at >= 0 {
					t.Errorf("there is %q in %.200q", end, got[max(0, at-100):])
				}
			}
		})
	}
}
