package httptool_test

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/parley-server/parley/internal/store/toolset"
	"github.com/parley-server/parley/internal/tool"
)

// verify checks the signature of a request as a receiver does.
func verify(t *testing.T, secret string, r *http.Request, body []byte) {
	t.Helper()
	hook, err := standardwebhooks.NewWebhook(secret)
	if err != nil {
		t.Fatal(err)
	}
	if err := hook.Verify(body, r.Header); err != nil {
		t.Errorf("%s %s: %v", r.Method, r.URL, err)
	}
}

// TestToolsOfARealAPI calls tools whose input goes to the path, the query and the body.
func TestToolsOfARealAPI(t *testing.T) {
	t.Parallel()
	var secret atomic.Value
	w := newWorld(t, http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		verify(t, secret.Load().(string), r, body)
		rw.Header().Set("Content-Type", "application/json")
		switch r.URL.Path {
		case "/v1/big":
			fmt.Fprintf(rw, `{"rows":%q}`, strings.Repeat("x", 100<<10))
			return
		case "/v1/image":
			rw.Header().Set("Content-Type", "image/png")
			_, _ = rw.Write([]byte("\x89PNG"))
			return
		case "/v1/empty":
			rw.WriteHeader(http.StatusNoContent)
			return
		case "/v1/none":
			rw.WriteHeader(http.StatusNotFound)
			_, _ = rw.Write([]byte(`{"error":"no such customer"}`))
			return
		}
		fmt.Fprintf(rw, `%s %s %s id=%s auth=%s`, r.Method, r.URL.EscapedPath(), r.URL.RawQuery+string(body), r.Header.Get("Webhook-Id"),
			r.Header.Get("Authorization"))
	}))
	secret.Store(w.secret)
	whole := define("whole", "POST", "/orders", `{"body":{"type":"array"},"dry":{"type":"boolean"}}`, "body")
	whole.HTTP.In = map[string]toolset.Place{"body": toolset.WholeBody, "dry": toolset.InQuery}
	tools := w.tools(t, erp,
		define("find", "GET", "/customers/{id}",
			`{"id":{"type":["string","integer"]},"tag":{"type":"array"},"q":{"type":["string","null"]}}`, "id"),
		define("rename", "PUT", "/customers/{id}", `{"id":{"type":"string"},"name":{"type":"string"}}`, "id", "name"),
		define("delete", "DELETE", "/customers/{id}", `{"id":{"type":"string"},"force":{"type":"boolean"}}`, "id"),
		whole, define("big", "GET", "/big", `{}`), define("image", "GET", "/image", `{}`), define("empty", "POST", "/empty", `{}`),
		define("none", "POST", "/none", `{}`))
	for _, c := range []struct{ tool, input, want string }{
		{"find", `{"id":"a b","tag":["x","y&z"],"q":null}`, "GET /v1/customers/a%20b tag=x&tag=y%26z id=call_1 auth=Bearer [secret:ERP_TOKEN]"},
		{"find", `{"id":7,"q":"{id}"}`, "GET /v1/customers/7 q=%7Bid%7D id=call_1 auth=Bearer [secret:ERP_TOKEN]"},
		{"find", `{"id":"../../admin"}`, "!id is a part of the address"},
		{"find", `{"id":".."}`, "!id is a part of the address"},
		{"find", `{"id":""}`, "!id is a part of the address"},
		{"find", `{}`, "!The input does not fit the tool's schema"},
		{"find", `{"id":"1","x":1}`, "!Unknown member"},
		{"rename", `{"id":"?x=1#y","name":"Ada"}`, `PUT /v1/customers/%3Fx=1%23y {"name":"Ada"} id=call_1 auth=Bearer [secret:ERP_TOKEN]`},
		{"delete", `{"id":"7","force":true}`, "DELETE /v1/customers/7 force=true id=call_1 auth=Bearer [secret:ERP_TOKEN]"},
		{"whole", `{"body":[1,2],"dry":false}`, "POST /v1/orders dry=false[1,2] id=call_1 auth=Bearer [secret:ERP_TOKEN]"},
		{"empty", `{}`, "[no content]"},
		{"none", `{}`, "!The tool erp__none answers HTTP 404 Not Found.\n{\"error\":\"no such customer\"}"},
	} {
		res := w.must(t, tools[c.tool], c.input)
		want, failed := strings.CutPrefix(c.want, "!")
		if res.OK == failed || !strings.HasPrefix(res.Output, want) {
			t.Errorf("%s %s: %v %.300s", c.tool, c.input, res.OK, res.Output)
		}
	}
	if res := w.must(t, tools["big"], `{}`); len(res.Output) <= tool.MaxOutput { // the agent shortens it
		t.Errorf("a long result: %d bytes, %.200s", len(res.Output), res.Output)
	}
	if res := w.must(t, tools["image"], `{}`); !strings.Contains(res.Output,
		"[response, image/png: all of it is in /workspace/tool-results/erp__image-1.png]") {
		t.Errorf("an image: %s", res.Output)
	}
	if list, err := w.store.List(t.Context(), w.workspace); err != nil || list[0].LastUsedAt == nil {
		t.Errorf("%+v, %v", list, err)
	}
}

// TestLaterResults calls tools whose receiver answers 202.
func TestLaterResults(t *testing.T) {
	t.Parallel()
	var awaited atomic.Bool
	w := newWorld(t, http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/v1/order" && !awaited.Load() {
			t.Error("the request left before a result could be posted")
		}
		if r.URL.Path == "/v1/now" {
			fmt.Fprint(rw, "at once")
			return
		}
		rw.WriteHeader(http.StatusAccepted)
		fmt.Fprint(rw, r.Header.Get("Parley-Reply-Url"))
	}))
	order, now, plain := define("order", "POST", "/order", `{}`), define("now", "POST", "/now", `{}`), define("plain", "POST", "/plain", `{}`)
	order.HTTP.Later, now.HTTP.Later = true, true
	tools := w.tools(t, erp, order, now, plain)
	if !tools["order"].Spec().Later || tools["plain"].Spec().Later {
		t.Error("the wrong tools may answer later")
	}
	call := tool.Call{ID: "call_1", Workspace: w.workspace, Input: []byte(`{}`), Await: func(context.Context) error {
		awaited.Store(true)
		return nil
	}}
	if _, err := tools["order"].Call(t.Context(), call); !errors.As(err, new(tool.Later)) {
		t.Errorf("%v", err)
	}
	if res, err := tools["now"].Call(t.Context(), call); err != nil || res.Output != "at once" {
		t.Errorf("%+v, %v", res, err)
	}
	if res, err := tools["plain"].Call(t.Context(), call); err != nil || !res.OK || res.Output != "[no content]" {
		t.Errorf("%+v, %v", res, err)
	}
}

// TestCallsAreRepeatedOnlyWhereThatIsSafe fails requests in every way, and counts them.
func TestCallsAreRepeatedOnlyWhereThatIsSafe(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	seen := make(map[string][]string) // ids by path
	w := newWorld(t, http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		mu.Lock()
		seen[r.URL.Path] = append(seen[r.URL.Path], r.Header.Get("Webhook-Id"))
		mu.Unlock()
		switch {
		case strings.HasSuffix(r.URL.Path, "/busy"):
			rw.WriteHeader(http.StatusTooManyRequests)
		case strings.HasSuffix(r.URL.Path, "/error"):
			rw.WriteHeader(http.StatusBadGateway)
		case strings.HasSuffix(r.URL.Path, "/slow"):
			<-r.Context().Done()
			panic(http.ErrAbortHandler) // a response could still arrive
		case strings.HasSuffix(r.URL.Path, "/broken"):
			panic(http.ErrAbortHandler)
		}
	}))
	var defined []toolset.HTTPTool
	for _, kind := range []string{"once", "idempotent", "read"} {
		for _, fails := range []string{"busy", "error", "slow", "broken"} {
			d := define(kind+"_"+fails, "POST", "/"+kind+"/"+fails, `{}`)
			d.HTTP.Timeout, d.Annotations.Idempotent = 1, kind == "idempotent"
			if kind == "read" {
				d.Label = new(toolset.ReadOnly)
			}
			defined = append(defined, d)
		}
	}
	tools := w.tools(t, erp, defined...)
	for _, d := range defined {
		kind, fails, _ := strings.Cut(d.Name, "_")
		res, err := w.call(t, t.Context(), tools[d.Name], "call_"+d.Name, `{}`)
		if err != nil {
			t.Fatal(err)
		}
		want, prefix := 2, ""
		if fails == "busy" {
			want = 1
		} else if kind == "once" {
			want, prefix = 1, "interrupted, outcome unknown: "
		}
		text := map[string]string{"busy": "answers HTTP 429", "error": "answers HTTP 502", "slow": "gave no result within 1 seconds",
			"broken": "could not be reached"}[fails]
		if res.OK || !strings.Contains(res.Output, text) || strings.HasPrefix(res.Output, "interrupted") != (prefix != "") {
			t.Errorf("%s: %+v", d.Name, res)
		}
		mu.Lock()
		got := seen["/v1/"+kind+"/"+fails]
		mu.Unlock()
		if len(got) != want || got[0] != "call_"+d.Name || got[len(got)-1] != got[0] {
			t.Errorf("%s: requests %q", d.Name, got)
		}
	}
	if list, err := w.store.List(t.Context(), w.workspace); err != nil || !strings.Contains(list[0].LastError, "could not be reached") {
		t.Errorf("%+v, %v", list, err)
	}
	// The model chose the input of a call that is rejected, so it is no failure of the server.
	if res, err := w.call(t, t.Context(), tools["once_busy"], "call_rejected", `{}`); err != nil || res.OK {
		t.Errorf("%+v, %v", res, err)
	}
	if list, err := w.store.List(t.Context(), w.workspace); err != nil || list[0].LastError != "" {
		t.Errorf("%+v, %v", list, err)
	}
}

// TestCancelEndsTheRequest cancels a call while its receiver works.
func TestCancelEndsTheRequest(t *testing.T) {
	t.Parallel()
	began, ended := make(chan struct{}), make(chan struct{})
	w := newWorld(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		close(began)
		<-r.Context().Done()
		close(ended)
	}))
	tools := w.tools(t, erp, define("slow", "GET", "/slow", `{}`))
	ctx, cancel := context.WithCancelCause(t.Context())
	errCanceled := errors.New("canceled")
	go func() { <-began; cancel(errCanceled) }()
	if _, err := w.call(t, ctx, tools["slow"], "call_1", `{}`); !errors.Is(err, errCanceled) {
		t.Error(err)
	}
	select {
	case <-ended:
	case <-time.After(10 * time.Second):
		t.Error("the receiver goes on")
	}
}

// TestSecretsGoToTheirHostsAlone uses secrets of another host, and none.
func TestSecretsGoToTheirHostsAlone(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	w := newWorld(t, http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		fmt.Fprint(rw, base64.StdEncoding.EncodeToString([]byte(r.Header.Get("X-Key"))))
	}))
	for _, name := range []string{"OTHER", "NONE"} {
		e := erp
		e.Headers = map[string]string{"X-Key": "${" + name + "}"}
		res := w.must(t, w.tools(t, e, define("get", "GET", "/", `{}`))["get"], `{}`)
		sent, _ := base64.StdEncoding.DecodeString(res.Output)
		if strings.Contains(string(sent), "0815") || res.OK != (name == "OTHER") {
			t.Errorf("%s: %+v", name, res)
		}
		if err := w.store.Remove(t.Context(), w.workspace, "erp"); err != nil {
			t.Fatal(err)
		}
	}
	if n := asked.Load(); n != 1 {
		t.Errorf("%d requests left", n)
	}
}
