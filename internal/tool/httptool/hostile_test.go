package httptool_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/parley-server/parley/internal/testing/egresstest"
)

// TestHostileReceiversFailTheirCalls calls receivers that misbehave: each call fails with a reason, in
// time, and without a secret.
func TestHostileReceiversFailTheirCalls(t *testing.T) {
	t.Parallel()
	canary := egresstest.NewCanary(t)
	filler := []byte(strings.Repeat("x", 64<<10))
	w := newWorld(t, http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // the end of the connection is noticed after it
		switch r.URL.Path {
		case "/v1/large":
			for range 11 << 20 / len(filler) {
				_, _ = rw.Write(filler)
			}
		case "/v1/endless":
			for r.Context().Err() == nil {
				if _, err := rw.Write(filler); err != nil {
					return
				}
			}
		case "/v1/trickle":
			rw.WriteHeader(http.StatusOK)
			_ = http.NewResponseController(rw).Flush()
			<-r.Context().Done()
			panic(http.ErrAbortHandler) // a return would end the response
		case "/v1/redirect":
			http.Redirect(rw, r, "http://"+canary.Addr+"/private", http.StatusTemporaryRedirect)
		case "/v1/echo":
			rw.WriteHeader(http.StatusBadRequest)
			fmt.Fprint(rw, r.Header.Get("Authorization"))
		case "/v1/header":
			rw.Header().Set("Content-Type", strings.Repeat(token, 100))
			fmt.Fprint(rw, token)
		case "/v1/accepted":
			rw.WriteHeader(http.StatusAccepted)
			for r.Context().Err() == nil {
				if _, err := rw.Write(filler); err != nil {
					return
				}
			}
		}
	}))
	want := map[string]string{
		"large": unknown + "The answer of the tool is larger than 10 MiB.", "endless": unknown + "The answer of the tool is larger than 10 MiB.",
		"trickle":  unknown + "The tool erp__trickle gave no result within 1 seconds.",
		"redirect": "The tool erp__redirect answers HTTP 307 Temporary Redirect. Redirects are not followed.",
		"echo":     "The tool erp__echo answers HTTP 400 Bad Request.\nBearer [secret:ERP_TOKEN]", "header": "[secret:ERP_TOKEN]",
	}
	for name, out := range want {
		d := define(name, "POST", "/"+name, `{}`)
		if name == "trickle" {
			d.HTTP.Timeout = 1
		}
		x := w.tools(t, erp, d)[name]
		if res := w.must(t, x, `{}`); res.Output != out || res.OK != (name == "header") {
			t.Errorf("%s: %v %.200s", name, res.OK, res.Output)
		}
		if err := w.store.Remove(t.Context(), w.workspace, "erp"); err != nil {
			t.Fatal(err)
		}
	}
	accepted := define("accepted", "POST", "/accepted", `{}`)
	accepted.HTTP.Later = true
	if _, err := w.call(t, t.Context(), w.tools(t, erp, accepted)["accepted"], "call_1", `{}`); err == nil ||
		!strings.Contains(err.Error(), "later") {
		t.Errorf("%v", err)
	}
	list, err := w.store.List(t.Context(), w.workspace)
	if err != nil || strings.Contains(list[0].LastError, token) {
		t.Errorf("%+v, %v", list, err)
	}
}

const unknown = "interrupted, outcome unknown: "
