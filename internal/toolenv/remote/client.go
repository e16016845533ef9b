package remote

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/loopback"
	"github.com/parley-server/parley/internal/toolenv/sandbox"
)

// Config configures a Client.
type Config struct {
	Address string         // https://host:port, http://host:port or unix:///path
	Token   string         // the one of the runner
	Roots   *x509.CertPool // authorities of the runner's certificate; nil: the system's
	Version string         // of this release, for the runner's log and for errors
}

// Client sends commands to a runner. It is safe for concurrent use.
type Client struct {
	cfg  Config
	base string
	http *http.Client
}

// NewClient returns a client. CheckAddress has accepted the address.
func NewClient(cfg Config) *Client {
	dial := (&net.Dialer{Timeout: connectTime}).DialContext
	c := &Client{cfg: cfg, base: strings.TrimSuffix(cfg.Address, "/")}
	if path, ok := strings.CutPrefix(cfg.Address, "unix://"); ok {
		c.base = "http://runner"
		dial = func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{Timeout: connectTime}).DialContext(ctx, "unix", path)
		}
	}
	c.http = &http.Client{
		Transport: &http.Transport{
			DialContext: dial, TLSHandshakeTimeout: connectTime, ResponseHeaderTimeout: answerTime, DisableKeepAlives: true,
			TLSClientConfig: &tls.Config{RootCAs: cfg.Roots, MinVersion: tls.VersionTLS13},
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return c
}

// CheckAddress returns the reason why an address is not one of a runner, or "". Without TLS it must be
// on this machine, unless plain.
func CheckAddress(address string, plain bool) string {
	u, err := url.Parse(address)
	if err != nil {
		return "it is not an address"
	}
	switch {
	case u.Scheme == "unix":
		if u.Host != "" || !strings.HasPrefix(u.Path, "/") {
			return "the path of a socket is absolute, as in unix:///run/parley/runner.sock"
		}
		return ""
	case u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.User != nil:
		return "it takes https://host:port, http://host:port or unix:///path"
	case u.Scheme == "http" && !plain && !loopback.IsHost(u.Hostname()):
		return "the token and the files of sessions would cross the network without encryption. Use https://, or set " +
			"PARLEY_RUNNER_PLAIN=true if the network encrypts"
	}
	return ""
}

// Info describes a runner.
type Info struct {
	Version string
	Limited bool // the kernel limits the memory of a command as a whole
}

// Check runs a command that does nothing, with everything that a command needs.
func (c *Client) Check(ctx context.Context) (Info, error) {
	dir, err := os.MkdirTemp("", "parley-check-")
	if err != nil {
		return Info{}, err
	}
	defer os.RemoveAll(dir)
	conn, info, err := c.connect(ctx)
	if err != nil {
		return info, err
	}
	r, err := runOn(ctx, conn, uuid.Nil, sandbox.Command{Argv: []string{"/bin/true"}, Folder: dir})
	if err == nil && (r.Exit != 0 || r.Killed != "") {
		err = fmt.Errorf("a test command on the runner ended with exit code %d. %s", r.Exit, r.Killed)
	}
	return info, err
}

// Probe reports whether the runner can be reached and takes commands of this client. It runs none, so
// it finds no fault of the runner's sandbox. ctx has its deadline.
func (c *Client) Probe(ctx context.Context) error {
	res, err := c.request(ctx, http.MethodGet, healthPath, nil)
	if err != nil {
		return err
	}
	res.Body.Close()
	if res.StatusCode != http.StatusOK || res.Header.Get(versionHeader) == "" {
		return c.explainRefusal(res)
	}
	return nil
}

// Run runs a command on the runner, and applies its changes to the folder on this machine. Its error
// is a *sandbox.Failure if the command did not run, ErrLost if that is not known, a *workdir.Refusal
// if the folder cannot be sent, and context.Cause(ctx) if ctx ended it.
func (c *Client) Run(ctx context.Context, workspace uuid.UUID, cmd sandbox.Command) (Result, error) {
	if ctx.Err() != nil {
		return Result{}, context.Cause(ctx)
	}
	conn, err := c.reach(ctx)
	if err != nil && ctx.Err() != nil {
		return Result{}, context.Cause(ctx)
	}
	if err != nil {
		return Result{}, &sandbox.Failure{Reason: err.Error()}
	}
	return runOn(ctx, conn, workspace, cmd)
}

// reach is connect, and waits for a runner that restarts.
func (c *Client) reach(ctx context.Context) (io.ReadWriteCloser, error) {
	deadline := time.Now().Add(reachTime)
	for {
		conn, _, err := c.connect(ctx)
		if !errors.Is(err, errUnreachable) || time.Now().After(deadline) {
			return conn, err
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(reachEvery):
		}
	}
}

// errUnreachable is the error of a runner that may be about to start.
var errUnreachable = errors.New("the runner cannot be reached")

// connect opens a connection for a command. Its error explains what is wrong.
func (c *Client) connect(ctx context.Context) (io.ReadWriteCloser, Info, error) {
	res, err := c.request(ctx, http.MethodPost, commandPath, http.Header{"Connection": {"Upgrade"}})
	if err != nil {
		return nil, Info{}, err
	}
	info := Info{Version: res.Header.Get(versionHeader), Limited: res.Header.Get(limitedHeader) == "true"}
	if conn, ok := res.Body.(io.ReadWriteCloser); ok && res.StatusCode == http.StatusSwitchingProtocols {
		return conn, info, nil
	}
	res.Body.Close()
	return nil, info, c.explainRefusal(res)
}

// request sends a request with the token and the protocol of this client.
func (c *Client) request(ctx context.Context, method, path string, header http.Header) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, nil)
	if err != nil {
		return nil, err
	}
	maps.Copy(req.Header, header)
	req.Header.Set("Authorization", "Bearer "+c.cfg.Token)
	req.Header.Set("Upgrade", upgradeName+strconv.Itoa(Protocol))
	req.Header.Set(versionHeader, c.cfg.Version)
	res, err := c.http.Do(req)
	if err != nil {
		if failed, ok := errors.AsType[*url.Error](err); ok {
			err = failed.Err
		}
		return nil, fmt.Errorf("%w at %s: %w", errUnreachable, c.cfg.Address, err)
	}
	return res, nil
}

// explainRefusal explains a response that is not an upgrade.
func (c *Client) explainRefusal(res *http.Response) error {
	version := res.Header.Get(versionHeader)
	switch {
	case version == "":
		return fmt.Errorf("%s is not a runner: it responds %q", c.cfg.Address, res.Status)
	case res.StatusCode == http.StatusUnauthorized:
		return fmt.Errorf("the runner at %s does not accept the token. PARLEY_RUNNER_TOKEN must be the same on both sides", c.cfg.Address)
	case res.StatusCode == http.StatusUpgradeRequired:
		return fmt.Errorf(
			"the runner at %s is parley %.40q and uses protocol %d of runners, this server is %s and uses %d. Run the same release on both sides",
			c.cfg.Address, version, protocolOf(res.Header.Get("Upgrade")), c.cfg.Version, Protocol)
	case res.StatusCode == http.StatusServiceUnavailable:
		return fmt.Errorf("%w at %s: it is stopping", errUnreachable, c.cfg.Address)
	}
	return fmt.Errorf("the runner at %s responds %q", c.cfg.Address, res.Status)
}
