//go:build unix

package e2e_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/parley-server/parley/internal/testing/need"
	"github.com/parley-server/parley/internal/testing/wait"
)

// TestReverseProxies runs the proxies of deploy/proxy, with their files, in front of a server. A
// client reads a stream over TLS to a question, while the turn waits for its answer: a proxy that
// buffers would hold the question back. Then it leaves, answers, and resumes with its cursor.
func TestReverseProxies(t *testing.T) {
	t.Parallel()
	for _, proxy := range []struct {
		program, file string
		command       func(program, dir, config string) *exec.Cmd
		config        func(text, address, upstream, cert, key string) string
	}{{
		"nginx", "nginx.conf",
		func(program, dir, config string) *exec.Cmd {
			return exec.Command(program, "-p", dir, "-c", config, "-e", "stderr", "-g", "daemon off;")
		},
		func(text, address, upstream, cert, key string) string {
			text = replace(text, "127.0.0.1:8080", upstream, "listen 443", "listen "+address, "/etc/ssl/parley.crt", cert,
				"/etc/ssl/parley.key", key)
			return "pid nginx.pid;\nevents {}\nhttp {\naccess_log off;\nclient_body_temp_path body;\nproxy_temp_path " +
				"proxy;\nfastcgi_temp_path f;\nuwsgi_temp_path u;\nscgi_temp_path s;\n" + text + "}\n"
		},
	}, {
		"caddy", "Caddyfile",
		func(program, _, config string) *exec.Cmd {
			return exec.Command(program, "run", "--adapter", "caddyfile", "--config", config)
		},
		func(text, address, upstream, cert, key string) string {
			text = replace(text, "127.0.0.1:8080", upstream, "parley.example.com {", "https://"+address+" {\n\ttls "+cert+" "+key)
			return "{\n\tadmin off\n\tauto_https disable_redirects\n}\n" + text
		},
	}} {
		t.Run(proxy.program, func(t *testing.T) {
			t.Parallel()
			program, err := exec.LookPath(proxy.program)
			if err != nil {
				program = "/usr/sbin/" + proxy.program
			}
			if _, err := os.Stat(program); err != nil {
				need.Missing(t, "%s is not installed", proxy.program)
			}
			w := newWorld(t)
			replica := w.serve(t, nil)
			dir := t.TempDir()
			cert, key, trusted := makeCertificate(t, dir)
			text, err := os.ReadFile("../../../deploy/proxy/" + proxy.file)
			if err != nil {
				t.Fatal(err)
			}
			front := freeAddress(t)
			config := filepath.Join(dir, proxy.file)
			written := proxy.config(string(text), front, strings.TrimPrefix(replica.url, "http://"), cert, key)
			if err := os.WriteFile(config, []byte(written), 0o600); err != nil {
				t.Fatal(err)
			}
			runProxy(t, proxy.command(program, dir, config), front)

			transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: trusted}, ForceAttemptHTTP2: true}
			t.Cleanup(transport.CloseIdleConnections)
			w.client = &http.Client{Transport: transport, Timeout: wait.Limit}
			through := &server{url: "https://" + front}
			wait.For(t, "the proxy reaches the server", func() bool {
				res, _, err := w.try(through.post("/api/v1/workspaces/w/messages", map[string]any{}))
				return err == nil && res.StatusCode == http.StatusBadRequest
			})
			q := w.ask(t, through)
			if status, d := w.decide(t, through, q, "allow"); status != http.StatusOK || d.Data.Status != "allowed" {
				t.Fatalf("%d %+v", status, d)
			}
			rest, err := w.follow(t.Context(), q.session, q.cursor, nil, through)
			if err != nil {
				t.Fatal(err)
			}
			w.written(t, q, rest)
		})
	}
}

// replace replaces each old text, of which there must be one, by the new one that follows it.
func replace(text string, pairs ...string) string {
	for i := 0; i < len(pairs); i += 2 {
		if strings.Count(text, pairs[i]) != 1 {
			panic("the file of the proxy does not contain once: " + pairs[i])
		}
	}
	return strings.NewReplacer(pairs...).Replace(text)
}

func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// runProxy starts a proxy and waits until it listens.
func runProxy(t *testing.T, cmd *exec.Cmd, address string) {
	t.Helper()
	home := t.TempDir()
	cmd.Env = append(os.Environ(), "HOME="+home, "XDG_DATA_HOME="+home, "XDG_CONFIG_HOME="+home)
	cmd.Stdout, cmd.Stderr = t.Output(), t.Output()
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // nginx has workers
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		_ = wait.Result(t, "the end of the proxy", cmd.Wait)
	})
	wait.For(t, "the proxy listens", func() bool {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			return false
		}
		conn.Close()
		return true
	})
}

// makeCertificate writes a certificate of 127.0.0.1 and its key into dir.
func makeCertificate(t *testing.T, dir string) (cert, key string, trusted *x509.CertPool) {
	t.Helper()
	secret, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "parley"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, secret.Public(), secret)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(secret)
	if err != nil {
		t.Fatal(err)
	}
	trusted = x509.NewCertPool()
	for name, block := range map[string]*pem.Block{"crt": {Type: "CERTIFICATE", Bytes: der}, "key": {Type: "PRIVATE KEY", Bytes: private}} {
		text := pem.EncodeToMemory(block)
		trusted.AppendCertsFromPEM(text)
		if err := os.WriteFile(filepath.Join(dir, "parley."+name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, "parley.crt"), filepath.Join(dir, "parley.key"), trusted
}
