package egress_test

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/parley-server/parley/internal/egress"
)

// echoes are the ways in which a server returns the value it received.
var echoes = map[string]func(w http.ResponseWriter, secret string){
	"plain":  func(w http.ResponseWriter, s string) { fmt.Fprint(w, "it is ", s, ".") },
	"base64": func(w http.ResponseWriter, s string) { fmt.Fprint(w, base64.StdEncoding.EncodeToString([]byte(s))) },
	"user:value": func(w http.ResponseWriter, s string) {
		fmt.Fprint(w, base64.StdEncoding.EncodeToString([]byte("me:"+s)))
	},
	"base64url": func(w http.ResponseWriter, s string) {
		fmt.Fprint(w, base64.RawURLEncoding.EncodeToString([]byte("x"+s)))
	},
	"hex":  func(w http.ResponseWriter, s string) { fmt.Fprint(w, hex.EncodeToString([]byte(s))) },
	"json": func(w http.ResponseWriter, s string) { _ = json.NewEncoder(w).Encode(map[string]string{"key": s}) },
	"url": func(w http.ResponseWriter, s string) {
		fmt.Fprint(w, "?k=", url.QueryEscape(s), "&p=", url.PathEscape(s))
	},
	"header":      func(w http.ResponseWriter, s string) { w.Header().Set("X-Echo", s) },
	"header name": func(w http.ResponseWriter, s string) { w.Header().Set("X-"+hex.EncodeToString([]byte(s)), "1") },
	"cookie":      func(w http.ResponseWriter, s string) { w.Header().Add("Set-Cookie", "k="+url.QueryEscape(s)) },
	"location": func(w http.ResponseWriter, s string) {
		w.Header().Set("Location", "https://evil.test/?"+url.QueryEscape(s))
		w.WriteHeader(http.StatusFound)
	},
	"bytes": func(w http.ResponseWriter, s string) {
		for i := range len(s) {
			fmt.Fprint(w, s[i:i+1])
			w.(http.Flusher).Flush()
		}
	},
	"lines": func(w http.ResponseWriter, s string) {
		text := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("-", 40) + s))
		fmt.Fprint(w, text[:64], "\r\n", text[64:])
	},
	"failure": func(w http.ResponseWriter, s string) { http.Error(w, "no such key: "+s, http.StatusUnauthorized) },
	"trailer": func(w http.ResponseWriter, s string) {
		w.Header().Set("Trailer", "X-Echo")
		fmt.Fprint(w, "text")
		w.Header().Set("X-Echo", s)
	},
	"gzip": func(w http.ResponseWriter, s string) {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		fmt.Fprint(z, s)
		z.Close()
		w.Header().Set("Content-Encoding", "gzip")
		_, _ = w.Write(b.Bytes())
	},
}

// TestEchoesAreRedacted makes a server echo the value in every way.
func TestEchoesAreRedacted(t *testing.T) {
	t.Parallel()
	w := newWorld(t, egress.Config{})
	w.hook = func(rw http.ResponseWriter, r *http.Request) {
		echoes[strings.TrimPrefix(r.URL.Path, "/")](rw, strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "))
	}
	for _, d := range doors(t, w.run(t, egress.RunConfig{})) {
		for how := range echoes {
			a := d.get(t, "https://api.test/"+url.PathEscape(how))
			if a.err != nil || a.status >= 500 {
				t.Errorf("%s %s: %s", d.name, how, a.text())
			}
			if how != "trailer" && how != "header name" && !strings.Contains(a.text(), mark) {
				t.Errorf("%s %s: no mark in %s", d.name, how, a.text())
			}
			hidden(t, a.text())
		}
		if got := w.last(t).header; got.Get("Authorization") != "Bearer "+value {
			t.Errorf("the server never had the value: %v", got)
		}
	}
}

// TestWhatCannotBeSearchedIsRefused uses responses that would hide the value.
func TestWhatCannotBeSearchedIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t, egress.Config{})
	w.hook = func(rw http.ResponseWriter, r *http.Request) {
		switch kind := strings.TrimPrefix(r.URL.Path, "/"); kind {
		case "206":
			rw.Header().Set("Content-Range", "bytes 0-9/40")
			rw.WriteHeader(http.StatusPartialContent)
			fmt.Fprint(rw, r.Header.Get("Authorization")[:17])
		case "parts":
			rw.Header().Set("Content-Type", ` Multipart/ByteRanges; boundary=x`)
			secret := r.Header.Get("Authorization")
			fmt.Fprintf(rw, "--x\r\nContent-Range: bytes 0-9/40\r\n\r\n%s\r\n--x\r\nContent-Range: bytes 10-/40\r\n\r\n%s\r\n--x--\r\n",
				secret[:17], secret[17:])
		case "switch":
			rw.Header().Set("Connection", "Upgrade")
			rw.Header().Set("Upgrade", "text")
			rw.WriteHeader(http.StatusSwitchingProtocols)
		default:
			rw.Header().Set("Content-Encoding", kind)
			fmt.Fprint(rw, r.Header.Get("Authorization"))
		}
	}
	for _, d := range doors(t, w.run(t, egress.RunConfig{})) {
		for _, kind := range []string{"br", "deflate", "zstd", "x-gzip", "gzip,%20gzip", "compress", "aes128gcm", "switch", "206", "parts"} {
			a := d.get(t, "https://api.test/"+kind)
			refusedWith(t, d, a, http.StatusBadGateway, "The answer of api.test ")
			hidden(t, a.text())
		}
		if a := d.send(t, http.MethodHead, "https://api.test/br", "", nil); a.err != nil || a.status != 200 ||
			a.header.Get("Content-Encoding") != "" {
			t.Errorf("%s: an answer without a body: %s", d.name, a.text())
		}
	}
	for _, n := range w.noted() {
		if n.Method != http.MethodHead && (n.Decision != egress.Sent || n.final != egress.RefusedAnswer || n.status != 0) {
			t.Errorf("recorded: %+v", n)
		}
	}
}

// refusedWith checks that a request was rejected, in the form of its door.
func refusedWith(t *testing.T, d door, a answer, status int, sentence string) {
	t.Helper()
	if d.name == "do" {
		if e, ok := a.err.(*egress.Error); !ok || !strings.HasPrefix(e.Reason, sentence) {
			t.Errorf("do: %s", a.text())
		}
		return
	}
	if a.status != status || !strings.HasPrefix(a.body, "Parley refused this request: "+sentence) ||
		a.header.Get("Content-Type") != "text/plain; charset=utf-8" {
		t.Errorf("proxy: %s", a.text())
	}
}

// TestPartsAreNotGiven requests the value in halves.
func TestPartsAreNotGiven(t *testing.T) {
	t.Parallel()
	w := newWorld(t, egress.Config{})
	w.hook = func(rw http.ResponseWriter, r *http.Request) {
		http.ServeContent(rw, r, "key.txt", time.Time{}, strings.NewReader(r.Header.Get("Authorization")))
	}
	for _, d := range doors(t, w.run(t, egress.RunConfig{})) {
		for _, part := range []string{"bytes=0-15", "bytes=16-", "bytes=-20", "bytes=0-9,10-"} {
			a := d.send(t, http.MethodGet, "https://api.test/", "", func(r *http.Request) {
				r.Header.Set("Authorization", holder)
				r.Header.Set("Range", part)
				r.Header.Set("If-Range", `"tag"`)
			})
			if a.status != 200 || a.body != mark {
				t.Errorf("%s %s: %s", d.name, part, a.text())
			}
		}
	}
	for _, got := range w.arrivals() {
		if got.header.Get("Range") != "" || got.header.Get("If-Range") != "" {
			t.Errorf("arrived: %v", got.header)
		}
	}
}

// TestOtherRequestsAreRedactedToo stores the value at one host and reads it from that host and
// another one, without any placeholder.
func TestOtherRequestsAreRedactedToo(t *testing.T) {
	t.Parallel()
	w := newWorld(t, egress.Config{})
	var stored string
	w.hook = func(rw http.ResponseWriter, r *http.Request) {
		if s := r.Header.Get("Authorization"); s != "" {
			stored = s
		}
		fmt.Fprint(rw, stored)
	}
	for _, d := range doors(t, w.run(t, egress.RunConfig{Hosts: []string{"evil.test"}})) {
		stored = ""
		d.get(t, "https://api.test/store")
		if stored != "Bearer "+value {
			t.Fatalf("%s: %q is stored", d.name, stored)
		}
		for _, host := range []string{"api.test", "evil.test"} {
			if a := d.send(t, http.MethodGet, "https://"+host+"/", "", nil); a.body != "Bearer "+mark {
				t.Errorf("%s: %s gives %s", d.name, host, a.text())
			}
		}
	}
}

// TestBrokenAnswersDoNotShowTheValue uses servers that break the protocol with responses that
// contain the value: net/http quotes such responses.
func TestBrokenAnswersDoNotShowTheValue(t *testing.T) {
	t.Parallel()
	w := newWorld(t, egress.Config{})
	w.hook = func(rw http.ResponseWriter, r *http.Request) {
		conn, out, err := http.NewResponseController(rw).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		secret := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
		fmt.Fprintf(out, strings.ReplaceAll(map[string]string{
			"/status": "%s\r\n\r\n", "/proto": "HTTP/%s 200 OK\r\n\r\n", "/code": "HTTP/1.1 %s\r\n\r\n", "/line": "HTTP/1.1 200 OK\r\n%s\r\n\r\n",
			"/length": "HTTP/1.1 200 OK\r\nContent-Length: %s\r\n\r\n", "/encoding": "HTTP/1.1 200 OK\r\nTransfer-Encoding: %s\r\n\r\n",
			"/short": "HTTP/1.1 200 %s\r\nContent-Length: 1000\r\n\r\n%s", "/chunk": "HTTP/1.1 200 %s\r\nTransfer-Encoding: chunked\r\n\r\n%s\r\n",
			"/trailer": "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\ntext\r\n0\r\n%s nocolon\r\n\r\n",
			"/gzip":    "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n%s",
		}[r.URL.Path], "%s", "%[1]s"), secret)
		out.Flush()
	}
	for _, d := range doors(t, w.run(t, egress.RunConfig{})) {
		for _, path := range []string{"status", "proto", "code", "line", "length", "encoding", "short", "chunk", "trailer", "gzip"} {
			a := d.get(t, "https://api.test/"+path)
			if _, unanswered := a.err.(*egress.Unanswered); d.name == "do" && !unanswered {
				t.Errorf("%s: %T: %s", path, a.err, a.text())
			}
			if a.err == nil && a.status != http.StatusBadGateway {
				t.Errorf("%s %s: %s", d.name, path, a.text())
			}
			hidden(t, a.text())
		}
	}
	for _, n := range w.noted() {
		hidden(t, fmt.Sprintf("%+v", n))
	}
}
