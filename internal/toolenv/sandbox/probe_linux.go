package sandbox

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/parley-server/parley/internal/toolenv/sandbox/inside"
)

// findBwrap returns the path of a bubblewrap that is new enough.
func findBwrap(ctx context.Context, name string) (string, error) {
	if name == "" {
		name = "bwrap"
	}
	path, err := exec.LookPath(name)
	if err != nil {
		return "", bwrapMissing(name)
	}
	if path, err = filepath.Abs(path); err != nil {
		return "", err
	}
	out, err := exec.CommandContext(ctx, path, "--version").Output()
	if ctx.Err() != nil {
		return "", context.Cause(ctx)
	}
	version := strings.TrimSpace(string(out))
	if err != nil || !isRecent(version) {
		return "", bwrapOld(path, version)
	}
	return path, nil
}

// probeFeatures runs one command with every feature of a sandbox, and checks the actual result
// instead of the requested settings.
func (s *Sandbox) probeFeatures(ctx context.Context) error {
	if _, err := os.Stat("/proc/thread-self/children"); err != nil {
		return noChildren
	}
	folder, err := s.NewFolder("probe")
	if err != nil {
		return err
	}
	defer s.Remove(folder)
	var out bytes.Buffer
	held := func(ctx context.Context, _ net.Listener) error {
		<-ctx.Done()
		return nil
	}
	r, err := s.Run(ctx, Command{
		Argv:   []string{inside.Path, inside.ReportArgument, filepath.Dir(folder), "/home", "/root", "/var", "/sys"},
		Folder: folder, Attachments: folder, CA: []byte("none\n"),
		Serve: held, Direct: &Direct{TLS: held, Plain: held, DNS: func(ctx context.Context, _ net.PacketConn) error { return held(ctx, nil) }},
		Output: &out,
	})
	if failure, ok := errors.AsType[*Failure](err); ok {
		return unavailableSandbox(readHost(), failure.Reason)
	}
	if err != nil {
		return err
	}
	if r.Killed != "" || r.Exit != 0 {
		return unavailableSandbox(readHost(), fmt.Sprintf("the probe ended with exit code %d. %s", r.Exit, r.Killed))
	}
	if hole := judgeReport(out.String()); hole != "" {
		return unavailableLeak(hole)
	}
	return nil
}

// readHost reads the machine's settings for namespaces.
func readHost() facts {
	read := func(path string) string {
		text, _ := os.ReadFile("/proc/sys/" + path)
		return strings.TrimSpace(string(text))
	}
	f := facts{
		MaxUserNamespaces: read("user/max_user_namespaces"),
		UnprivilegedClone: read("kernel/unprivileged_userns_clone"),
		AppArmorRestricts: read("kernel/apparmor_restrict_unprivileged_userns"),
	}
	for _, mark := range []string{"/.dockerenv", "/run/.containerenv"} {
		if _, err := os.Stat(mark); err == nil {
			f.Container = true
		}
	}
	return f
}
