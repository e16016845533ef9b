package server

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/parley-server/parley/internal/metrics"
)

func TestRouterComparesPathsAsSent(t *testing.T) {
	t.Parallel()
	handler := func(name string) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = w.Write([]byte(name + " " + r.PathValue("id") + " " + r.PathValue("rest")))
		})
	}
	s := &Server{Config: Config{Log: slog.New(slog.DiscardHandler), Metrics: metrics.New()}}
	h := s.NewRouter(
		Routes{"/a": handler("a"), "/w/{id}/chat": handler("chat"), "/w/{id}/chat/{rest}/stream": handler("stream"),
			"/w/demo/{rest}": handler("name")},
		Routes{"/m/{rest...}": handler("m"), "/r/": handler("root"), "/r/v1/": handler("deeper"), "/r/v1/m/{rest...}": handler("under")},
	)
	for path, want := range map[string]string{
		"/a": "a  ", "/a/": "", "//a": "", "/%61": "", "/": "",
		"/w/demo/chat": "name  chat", "/w/other/chat": "chat other ", "/w//chat": "", "/w/other/chat/": "",
		"/w/demo%2Fx/chat": "chat demo/x ", "/w/../chat": "chat .. ",
		"/w/demo/chat/1%202/stream": "stream demo 1 2", "/w/demo/chat/stream": "", "/w/demo/chat/a/b/stream": "",
		"/m/a": "m  a", "/m/a/b": "m  a/b", "/m/a%2Fb": "m  a/b", "/m/": "", "/m": "",
		"/r": "", "/r/": "root  ", "/r/x/y": "root  ", "/r/v1/": "deeper  ", "/r/v1/x": "deeper  ", "/r/v1/m/x": "under  x",
		"/r/v1/m/": "deeper  ",
	} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		if got := w.Body.String(); want != "" && got != want || want == "" && (w.Code != http.StatusNotFound ||
			!strings.Contains(got, `"NOT_FOUND"`)) {
			t.Errorf("%s: %d %q, want %q", path, w.Code, got, want)
		}
	}
}

func TestRouterRejectsTwoHandlersForAPath(t *testing.T) {
	t.Parallel()
	defer func() {
		if recover() == nil {
			t.Error("the second handler replaced the first")
		}
	}()
	(&Server{}).NewRouter(Routes{"/a": http.NotFoundHandler()}, Routes{"/a": http.NotFoundHandler()})
}
