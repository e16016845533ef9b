package server_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/parley-server/parley/internal/server"
)

func TestRouteTakesPathsAsTheyAre(t *testing.T) {
	t.Parallel()
	say := func(name string) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = w.Write([]byte(name + " " + r.PathValue("id") + " " + r.PathValue("rest")))
		})
	}
	h := server.Route(say("rest"), map[string]http.Handler{"/a": say("a"), "/w/{id}/chat": say("chat"), "/w/{id}/chat/{rest}/stream": say("stream"), "/m/{rest...}": say("m"), "/r/": say("root"), "/r/v1/": say("deeper"), "/r/v1/m/{rest...}": say("under")})
	for path, want := range map[string]string{
		"/a": "a  ", "/a/": "rest  ", "//a": "rest  ", "/%61": "rest  ", "/": "rest  ",
		"/w/demo/chat": "chat demo ", "/w//chat": "rest  ", "/w/demo/chat/": "rest  ", "/w/demo%2Fx/chat": "chat demo/x ", "/w/../chat": "chat .. ",
		"/w/demo/chat/1%202/stream": "stream demo 1 2", "/w/demo/chat/stream": "rest  ", "/w/demo/chat/a/b/stream": "rest  ",
		"/m/a": "m  a", "/m/a/b": "m  a/b", "/m/a%2Fb": "m  a/b", "/m/": "rest  ", "/m": "rest  ",
		"/r": "rest  ", "/r/": "root  ", "/r/x/y": "root  ", "/r/v1/": "deeper  ", "/r/v1/x": "deeper  ", "/r/v1/m/x": "under  x", "/r/v1/m/": "deeper  ",
	} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		if got := w.Body.String(); got != want {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
}
