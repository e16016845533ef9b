package egress

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// serveProxy handles the requests of programs to their proxy.
func (s *proxy) serveProxy(w http.ResponseWriter, req *http.Request) {
	switch {
	case req.Method == http.MethodConnect:
		s.serveConnect(w, req)
	case req.URL.Scheme != "http" || req.URL.Host == "":
		writeSentence(w, invalidRequest("This is a proxy: it takes requests for http:// in absolute form, and tunnels for https://."))
	default:
		s.relayRequest(w, req)
	}
}

// serveConnect opens a tunnel. If the tunnel probably uses TLS, a refusal is sent inside the
// tunnel: few programs show a proxy's response.
func (s *proxy) serveConnect(w http.ResponseWriter, req *http.Request) {
	to, err := authorityOf(req.RequestURI)
	if err == nil {
		if _, port := targetOf(to); !isCommonPort(port) {
			_, err = s.run.admitURL(to)
		}
	}
	if err != nil {
		s.refuseTunnel(w, req, err)
		return
	}
	a, err := s.run.authority()
	if err != nil {
		writeSentence(w, err)
		return
	}
	conn, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		writeSentence(w, err)
		return
	}
	defer s.open.Done()
	t, err := s.handshakeTLS(req.Context(), conn, buffered, to, a)
	if err != nil {
		conn.Close()
		return
	}
	select {
	case s.tunnels.conns <- t:
	case <-s.tunnels.done:
		conn.Close()
	}
}

func (s *proxy) refuseTunnel(w http.ResponseWriter, req *http.Request, refused error) {
	at := Request{Method: req.Method, Scheme: "https", Host: s.run.redactForRecord(req.RequestURI, 260), Decision: decisionOf(refused)}
	if done, err := s.run.recordRequest(req.Context(), at); err == nil {
		done(0, at.Decision)
	}
	writeSentence(w, refused)
}

// authorityOf parses the target of a tunnel, host:port.
func authorityOf(text string) (*url.URL, error) {
	host, port, err := net.SplitHostPort(text)
	if err != nil {
		return nil, invalidRequest("A tunnel leads to host:port.")
	}
	name, addr, err := parseHost(host)
	if err != nil {
		return nil, err
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil || n == 0 {
		return nil, invalidRequest("The port of a tunnel is a number from 1 to 65535.")
	}
	if addr.IsValid() {
		name = addr.String()
	}
	u := &url.URL{Scheme: "https", Host: net.JoinHostPort(name, strconv.Itoa(int(n)))}
	if n == 443 {
		u.Host = strings.TrimSuffix(u.Host, ":443")
	}
	return u, nil
}

// tunnel is a connection to the host that a program addresses, after the proxy's end of TLS if the
// program uses TLS.
type tunnel struct {
	net.Conn
	to *url.URL
}

type tunnelKey struct{}

// handshakeTLS answers only for the host that a tunnel leads to.
func (s *proxy) handshakeTLS(ctx context.Context, conn net.Conn, buffered *bufio.ReadWriter, to *url.URL, a *authority) (*tunnel, error) {
	if err := conn.SetDeadline(time.Now().Add(HandshakeTime)); err != nil {
		return nil, err
	}
	if _, err := io.WriteString(conn, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		return nil, err
	}
	host := to.Hostname()
	c := tls.Server(&early{conn, buffered.Reader}, a.tlsConfig(host, false))
	if err := c.HandshakeContext(ctx); err != nil {
		return nil, err
	}
	return &tunnel{c, to}, conn.SetDeadline(time.Time{})
}

// early first reads the data that arrived with the request for the tunnel.
type early struct {
	net.Conn
	buffered *bufio.Reader
}

func (e *early) Read(p []byte) (int, error) {
	if e.buffered.Buffered() > 0 {
		return e.buffered.Read(p)
	}
	return e.Conn.Read(p)
}

// serveTunnel handles the requests in a tunnel.
func (s *proxy) serveTunnel(w http.ResponseWriter, req *http.Request) {
	t := req.Context().Value(tunnelKey{}).(*tunnel)
	if !strings.HasPrefix(req.RequestURI, "/") || req.URL.Host != "" || req.Host == "" {
		writeSentence(w, invalidRequest("To a server, requests name a path alone, and their host in the header Host."))
		return
	}
	req.URL.Scheme, req.URL.Host = t.to.Scheme, t.to.Host
	s.relayRequest(w, req)
}

// relayRequest sends a request and streams the response.
func (s *proxy) relayRequest(w http.ResponseWriter, req *http.Request) {
	rc := http.NewResponseController(w)
	_ = rc.EnableFullDuplex() // a response may begin before the request ends
	res, err := s.run.Do(req)
	if err != nil {
		writeSentence(w, err)
		return
	}
	defer res.Body.Close()
	to := w.Header()
	for name, values := range res.Header {
		to[name] = values
	}
	if _, typed := to["Content-Type"]; !typed {
		to["Content-Type"] = nil // else it is guessed
	}
	if res.ContentLength >= 0 && req.Method == http.MethodHead {
		to.Set("Content-Length", strconv.FormatInt(res.ContentLength, 10))
	}
	w.WriteHeader(res.StatusCode)
	_ = rc.Flush() // the body may arrive late
	if _, err := io.Copy(flushing{w, rc}, res.Body); err != nil {
		panic(http.ErrAbortHandler) // the program must not take this for the whole response
	}
}

// flushing hides that large pieces can be copied to a response.
type flushing struct {
	io.Writer
	rc *http.ResponseController
}

func (f flushing) Write(p []byte) (int, error) {
	n, err := f.Writer.Write(p)
	if err == nil {
		err = f.rc.Flush()
	}
	return n, err
}

// writeSentence responds with a sentence for readers of the program's output.
func writeSentence(w http.ResponseWriter, err error) {
	status, text := http.StatusServiceUnavailable, "Parley cannot make this request now."
	if refused, ok := errors.AsType[*Error](err); ok {
		status, text = refused.status, "Parley refused this request: "+refused.Reason
	} else if failed, ok := errors.AsType[*Unanswered](err); ok {
		status, text = http.StatusBadGateway, "The request failed: "+failed.Reason
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	fmt.Fprintln(w, text)
}
