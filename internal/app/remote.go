package app

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"strings"
	"time"

	"github.com/parley-server/parley/internal/loopback"
	"github.com/parley-server/parley/internal/toolenv/remote"
	"github.com/parley-server/parley/internal/toolenv/sandbox"
)

// minRunnerToken is the minimum length of the token of a runner.
const minRunnerToken = 32

// listRunnerProblems lists the invalid settings of a runner, on either side.
func (c Config) listRunnerProblems() []string {
	var list []string
	if c.Runner != "" {
		if why := remote.CheckAddress(c.Runner, c.RunnerPlain); why != "" {
			list = append(list, fmt.Sprintf("PARLEY_RUNNER is %q: %s.", c.Runner, why))
		}
		if c.RunnerToken == "" {
			list = append(list, "PARLEY_RUNNER is set, and PARLEY_RUNNER_TOKEN is not. Set it to the token of the runner.")
		}
	}
	if n := len(c.RunnerToken); n > 0 && n < minRunnerToken {
		list = append(list,
			fmt.Sprintf("PARLEY_RUNNER_TOKEN has %d characters, and at least %d are required. openssl rand -hex 32 makes one.", n, minRunnerToken))
	}
	if _, ok := strings.CutPrefix(c.RunnerListen, "unix:///"); !ok {
		if _, port, err := net.SplitHostPort(c.RunnerListen); err != nil || port == "" || strings.HasPrefix(port, "/") {
			list = append(list, fmt.Sprintf("PARLEY_RUNNER_LISTEN is %q: it takes host:port, such as :8090, or unix:///path.", c.RunnerListen))
		}
	}
	if (c.RunnerCert == "") != (c.RunnerKey == "") {
		list = append(list, "PARLEY_RUNNER_CERT and PARLEY_RUNNER_KEY belong together: set both.")
	}
	return list
}

// newRemote returns a client of the runner.
func (c Config) newRemote() (*remote.Client, error) {
	cfg := remote.Config{Address: c.Runner, Token: c.RunnerToken.Reveal(), Version: ThisBuild().Version}
	if c.RunnerCA != "" {
		text, err := os.ReadFile(c.RunnerCA)
		if err != nil {
			return nil, &ConfigError{[]string{"PARLEY_RUNNER_CA: " + sentenceOf(err)}}
		}
		cfg.Roots = x509.NewCertPool()
		if !cfg.Roots.AppendCertsFromPEM(text) {
			return nil, &ConfigError{[]string{"PARLEY_RUNNER_CA: " + c.RunnerCA + " contains no certificate."}}
		}
	}
	return remote.NewClient(cfg), nil
}

// runnerRemedy is the remedy for a runner that runs no command.
const runnerRemedy = "Check that parley runner runs there, that its log has no error, " +
	"and that PARLEY_RUNNER and PARLEY_RUNNER_TOKEN are right."

// buildRemote uses the runner in place of a sandbox. It may start later than the server.
func (s *service) buildRemote(ctx context.Context) error {
	client, err := s.Config.newRemote()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 2*checkTimeout)
	defer cancel()
	info, err := client.Check(ctx)
	switch {
	case err != nil && s.Config.Sandbox != "auto":
		return &StartError{Why: "PARLEY_SANDBOX is " + s.Config.Sandbox + ", and no command can run:", Do: runnerRemedy, Err: err}
	case err == nil && !info.Limited && s.Config.Sandbox == "require-limits":
		return &StartError{Why: "PARLEY_SANDBOX is require-limits, and the kernel does not limit commands on the runner.",
			Do: "Run parley sandbox check there."}
	case err != nil:
		s.Log.WarnContext(ctx, "commands fail until the runner can be used", "runner", s.Config.Runner, "err", err)
	default:
		s.Log.InfoContext(ctx, "commands run on the runner", "runner", s.Config.Runner, "version", info.Version, "limited", info.Limited)
	}
	s.remote = client
	s.banner.printStep("sandbox", "the agent's commands run on "+s.Config.Runner, 0)
	return nil
}

// checkRunner checks whether commands run on the runner.
func checkRunner(ctx context.Context, cfg Config) (Finding, error) {
	client, err := cfg.newRemote()
	if err != nil {
		return Finding{}, err
	}
	info, err := client.Check(ctx)
	if err != nil {
		return Finding{Grade: GradeFail, Result: sentenceOf(err), Remedy: runnerRemedy}, nil
	}
	f := okFinding("Commands run on %s (%s), and the kernel limits them.", cfg.Runner, info.Version)
	if !info.Limited {
		f = Finding{Grade: GradeWarn, Result: fmt.Sprintf(
			"Commands run on %s (%s). The runner watches their memory; the kernel does not limit it.", cfg.Runner, info.Version),
			Remedy: "Run parley sandbox check there."}
		if cfg.Sandbox == "require-limits" {
			f.Grade = GradeFail
		}
	}
	return f, nil
}

// ServeRunner runs commands for servers until ctx ends. It uses no database.
func ServeRunner(ctx context.Context, cfg Config, log *slog.Logger) error {
	if lacking := cfg.missingOfRunner(); len(lacking) > 0 {
		return &ConfigError{lacking}
	}
	box, err := OpenSandbox(ctx, cfg)
	if unavailable, ok := errors.AsType[*sandbox.Unavailable](err); ok {
		return &StartError{Why: "Commands cannot be contained here: " + unavailable.Reason, Do: unavailable.Remedy}
	}
	if err != nil {
		return fmt.Errorf("make the sandbox: %w", err)
	}
	defer func() {
		if err := box.Close(); err != nil {
			log.Warn("remove the files of commands; they are swept at the next start", "err", err)
		}
	}()
	unlimited, ok := errors.AsType[*sandbox.Unavailable](box.Limited())
	if ok && cfg.Sandbox == "require-limits" {
		return &StartError{Why: "PARLEY_SANDBOX is require-limits. " + unlimited.Reason, Do: unlimited.Remedy}
	}
	l, err := cfg.listenRunner(ctx)
	if err != nil {
		return &StartError{Why: "The address " + cfg.RunnerListen + " cannot be listened on:",
			Do: "Choose another with --listen or PARLEY_RUNNER_LISTEN.", Err: err}
	}
	log.InfoContext(ctx, "ready", "address", cfg.RunnerListen, "tls", cfg.RunnerCert != "", "limited", !ok, "commands", cfg.Commands,
		"protocol", remote.Protocol, "version", ThisBuild().Version)
	err = remote.NewRunner(remote.RunnerConfig{Sandbox: box, Token: cfg.RunnerToken.Reveal(), Commands: cfg.Commands,
		Version: ThisBuild().Version, Log: log}).Serve(ctx, l, cfg.Drain)
	log.Info("stopped")
	return err
}

// missingOfRunner lists the settings that are missing for a runner.
func (c Config) missingOfRunner() []string {
	var list []string
	if c.RunnerToken == "" {
		list = append(list, "PARLEY_RUNNER_TOKEN is not set. It is the token that the servers send, for example of openssl rand -hex "+
			"32, best in a file that PARLEY_RUNNER_TOKEN_FILE names.")
	}
	host, _, err := net.SplitHostPort(c.RunnerListen)
	socket := strings.HasPrefix(c.RunnerListen, "unix://")
	if err == nil && !socket && !loopback.IsHost(host) && c.RunnerCert == "" && !c.RunnerPlain {
		list = append(list, fmt.Sprintf("PARLEY_RUNNER_LISTEN is %q, which other machines reach, and no certificate is set. "+
			"Set PARLEY_RUNNER_CERT and PARLEY_RUNNER_KEY, or PARLEY_RUNNER_PLAIN=true where the network encrypts.", c.RunnerListen))
	}
	return list
}

// socketMode lets the group of the runner connect to its socket. They need the token, too.
const socketMode fs.FileMode = 0o660

// listenRunner opens the port or the socket of a runner.
func (c Config) listenRunner(ctx context.Context) (net.Listener, error) {
	network, address := "tcp", c.RunnerListen
	if path, ok := strings.CutPrefix(address, "unix://"); ok {
		network, address = "unix", path
		removeDeadSocket(ctx, path)
	}
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, network, address)
	if err != nil {
		return nil, err
	}
	if network == "unix" {
		err = os.Chmod(address, socketMode)
	}
	if c.RunnerCert != "" {
		_, failed := tls.LoadX509KeyPair(c.RunnerCert, c.RunnerKey)
		err = cmp.Or(err, failed)
		l = tls.NewListener(l, &tls.Config{MinVersion: tls.VersionTLS13, NextProtos: []string{"http/1.1"},
			GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
				pair, err := tls.LoadX509KeyPair(c.RunnerCert, c.RunnerKey)
				return &pair, err
			}})
	}
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

// removeDeadSocket removes the socket of a process that has ended.
func removeDeadSocket(ctx context.Context, path string) {
	info, err := os.Lstat(path)
	if err != nil || info.Mode().Type() != fs.ModeSocket {
		return
	}
	c, err := (&net.Dialer{Timeout: time.Second}).DialContext(ctx, "unix", path)
	if err == nil {
		c.Close()
		return
	}
	_ = os.Remove(path) // otherwise Listen reports that it exists
}
