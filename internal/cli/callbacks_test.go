package cli_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/parley-server/parley/internal/testing/wait"
)

// callback sends a message with a callback and waits until the callback was delivered.
func (s shell) callback(srv *server, url string) (id string) {
	s.t.Helper()
	key := strings.TrimPrefix(s.environ[len(s.environ)-1], "PARLEY_API_KEY=")
	r, err := http.NewRequestWithContext(s.t.Context(), http.MethodPost, srv.url+"/api/v1/workspaces/test/messages",
		strings.NewReader(`{"command":"@say hi","callback":{"url":"`+url+`","metadata":{"order":"17"}}}`))
	if err != nil {
		s.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+key)
	r.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer res.Body.Close()
	var got struct {
		Data struct {
			CallbackID string `json:"callback_id"`
		}
	}
	if err := json.NewDecoder(res.Body).Decode(&got); err != nil || res.StatusCode != http.StatusAccepted {
		s.t.Fatalf("%d, %v", res.StatusCode, err)
	}
	for s.t.Context().Err() == nil {
		if strings.Contains(s.must("callbacks", "show", got.Data.CallbackID), "not_sent") {
			break
		}
	}
	return got.Data.CallbackID
}

func TestListenForwardsWhatCallbacksAreTold(t *testing.T) {
	t.Parallel()
	sh, srv, _ := world(t)
	old := sh.callback(srv, "https://listen.invalid/old")

	secret := strings.TrimSpace(sh.must("listen", "--print-secret"))
	hook, err := standardwebhooks.NewWebhook(secret)
	if err != nil {
		t.Fatal(err)
	}
	bodies := make(chan string, 10)
	local := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if err := hook.Verify(body, r.Header); err != nil || r.URL.Path != "/hooks" || r.Header.Get("Content-Type") != "application/json" {
			t.Errorf("%s: %v", r.URL, err)
		}
		bodies <- string(body)
		w.WriteHeader(http.StatusAccepted)
	}))
	t.Cleanup(local.Close)
	k := sh.start("listen", "--forward-to", local.URL+"/hooks")
	k.errs.wait(t, "to stop.\n")
	if strings.Contains(k.errs.String(), strings.TrimPrefix(secret, "whsec_")) {
		t.Error("the secret is on stderr")
	}
	id := sh.callback(srv, "https://listen.invalid/new")
	line := "   <-- [202] POST " + local.URL + "/hooks [turn.completed]\n"
	k.out.wait(t, line)
	if body := wait.Receive(t, "a callback", bodies); !strings.Contains(body, `"type":"turn.completed"`) ||
		!strings.Contains(body, `"output":"hi"`) || !strings.Contains(body, `"metadata":{"order":"17"}`) {
		t.Errorf("%s", body)
	}
	sh.must("callbacks", "redeliver", old)
	if body := wait.Receive(t, "a callback", bodies); !strings.Contains(body, `"output":"hi"`) {
		t.Errorf("%s", body)
	}
	local.Close()
	sh.must("callbacks", "redeliver", id)
	k.out.wait(t, "connection refused] POST")
	k.interrupts <- os.Interrupt
	if code := wait.Receive(t, "the exit code", k.code); code != 0 || strings.Count(k.out.String(), line) != 2 || len(bodies) != 0 {
		t.Errorf("exit code %d: %s", code, k.out.String())
	}
	for _, bad := range []string{"localhost:3000", "ftp://x/"} {
		if _, errs, code := sh.run("listen", "--forward-to", bad); code != 2 || !strings.Contains(errs, "is not an address") {
			t.Errorf("--forward-to %q: %d %s", bad, code, errs)
		}
	}
}

func TestCallbacksAreShown(t *testing.T) {
	t.Parallel()
	sh, srv, _ := world(t)
	if _, errs, code := sh.run("callbacks", "list"); code != 0 || !strings.Contains(errs, "No deliveries.") {
		t.Errorf("%d %s", code, errs)
	}
	id := sh.callback(srv, "https://listen.invalid/?token=hush")
	for _, args := range [][]string{{"list"}, {"list", "--status", "failed"}, {"show", id}} {
		out := sh.must(append([]string{"callbacks"}, args...)...)
		if !strings.Contains(out, id) || !strings.Contains(out, "turn.completed") || !strings.Contains(out, "not_sent") ||
			strings.Contains(out, "hush") {
			t.Errorf("%v: %s", args, out)
		}
	}
	if out := sh.must("callbacks", "list", "--status", "delivered", "--json"); !strings.Contains(out, `"data": []`) {
		t.Errorf("%s", out)
	}
	if out := sh.must("callbacks", "show", id, "--json"); !strings.Contains(out, `"output": "hi"`) {
		t.Errorf("%s", out)
	}
	for _, line := range []string{"callbacks show nonsense", "callbacks redeliver nonsense"} {
		if _, errs, code := sh.run(strings.Fields(line)...); code != 2 || !strings.Contains(errs, "No such callback") {
			t.Errorf("%s: %d %s", line, code, errs)
		}
	}
	if _, errs, code := sh.run("callbacks", "list", "--limit", "0"); code != 2 || !strings.Contains(errs, "from 1 to 100") {
		t.Errorf("%d %s", code, errs)
	}
}

func TestSigningSecretIsPrintedOnce(t *testing.T) {
	t.Parallel()
	sh, _, _ := world(t)
	first := sh.must("callbacks", "secret")
	if !strings.HasPrefix(first, "whsec_") || strings.Count(first, "\n") != 1 {
		t.Errorf("%q", first)
	}
	if out, errs, code := sh.run("callbacks", "secret"); code != 2 || out != "" || !strings.Contains(errs, "--rotate") {
		t.Errorf("%d %q %s", code, out, errs)
	}
	second := sh.must("callbacks", "secret", "--rotate", "--overlap", "1h")
	if !strings.HasPrefix(second, "whsec_") || second == first {
		t.Errorf("%q", second)
	}
	for _, overlap := range []string{"never", "31d", "soon"} {
		if out, _, code := sh.run("callbacks", "secret", "--rotate", "--overlap", overlap); code != 2 || out != "" {
			t.Errorf("--overlap %s: %d", overlap, code)
		}
	}
}
