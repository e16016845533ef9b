package sandbox

import (
	"strings"
	"testing"
	"time"
)

func TestRemedies(t *testing.T) {
	t.Parallel()
	const (
		refused = "it did not begin: bwrap: No permissions to create new namespace, likely because the kernel does not allow " +
			"non-privileged user namespaces."
		uidMap = "it did not begin: bwrap: setting up uid map: Permission denied"
	)
	docker := facts{MaxUserNamespaces: "100", Container: true}
	for name, c := range map[string]struct {
		facts facts
		words string
		want  string
	}{
		"no user namespaces":            {facts{MaxUserNamespaces: "0"}, refused, "sysctl -w user.max_user_namespaces="},
		"no user namespaces, container": {facts{MaxUserNamespaces: "0", Container: true}, refused, "sysctl -w user.max_user_namespaces="},
		"too many": {facts{MaxUserNamespaces: "9"},
			"bwrap: Creating new namespace failed: nesting depth or /proc/sys/user/max_*_namespaces exceeded (ENOSPC)",
			"raise the values in /proc/sys/user"},
		"Debian": {facts{MaxUserNamespaces: "9", UnprivilegedClone: "0"}, refused,
			"sysctl -w kernel.unprivileged_userns_clone=1"},
		"Ubuntu": {facts{MaxUserNamespaces: "9", AppArmorRestricts: "1"}, uidMap, "bwrap-userns-restrict"},
		"Ubuntu, network": {facts{MaxUserNamespaces: "9", AppArmorRestricts: "1"},
			"bwrap: loopback: Failed RTM_NEWADDR: Operation not permitted", "bwrap-userns-restrict"},
		"Ubuntu that permits": {facts{MaxUserNamespaces: "9", AppArmorRestricts: "0"}, uidMap, "by hand"},
		"Docker":              {docker, refused, "seccomp=FILE"},
		"Docker on Ubuntu":    {facts{MaxUserNamespaces: "9", AppArmorRestricts: "1", Container: true}, refused, "seccomp=FILE"},
		"Docker, masked /proc": {docker, "bwrap: Can't mount proc on /newroot/proc: Operation not permitted",
			"systempaths=unconfined"},
		"Docker, read-only /proc/sys": {docker, "bwrap: cannot open /proc/sys/user/max_user_namespaces: Read-only file system",
			"systempaths=unconfined"},
		"Docker, mounts refused":          {docker, "bwrap: pivot_root: Operation not permitted", "apparmor=unconfined"},
		"Docker, AppArmor refuses mounts": {docker, "bwrap: Failed to make / slave: Permission denied", "apparmor=unconfined"},
		"capabilities": {facts{MaxUserNamespaces: "9"},
			"bwrap: Unexpected capabilities but not setuid, old file caps config?", "PARLEY_SANDBOX_UID"},
		"kernel without": {facts{},
			"bwrap: Creating new namespace failed, likely because the kernel does not support user namespaces.", "CONFIG_USER_NS"},
		"anything else": {facts{MaxUserNamespaces: "9"}, "bwrap: execvp /run/init: Input/output error", "by hand"},
	} {
		u := unavailableSandbox(c.facts, c.words)
		if !strings.Contains(u.Remedy, c.want) || !strings.Contains(u.Reason, c.words) {
			t.Errorf("%s: %v, want %q", name, u, c.want)
		}
		if !strings.HasSuffix(u.Remedy, ".") || !strings.Contains(u.Error(), u.Reason+" "+u.Remedy) {
			t.Errorf("%s has no sentences: %v", name, u)
		}
	}
	for _, u := range []*Unavailable{rootWithoutUser, noChildren, bwrapMissing("bwrap"), bwrapOld("/bwrap", ""),
		unavailablePath(UserRange{1, 1}, "/x"), unavailableLeak("x")} {
		if !strings.HasSuffix(u.Reason, ".") || !strings.HasSuffix(u.Remedy, ".") {
			t.Errorf("not sentences: %v", u)
		}
	}
}

func TestOnlyASandboxThatHoldsIsBelieved(t *testing.T) {
	t.Parallel()
	good := []string{"uid_map\t1000 1000 1", "unix\toperation not permitted", "sysctl\tread-only file system"}
	for _, who := range []string{"status.", "init."} {
		for _, set := range []string{"CapInh", "CapPrm", "CapEff", "CapAmb"} {
			good = append(good, who+set+"\t0000000000000000")
		}
		good = append(good, who+"NoNewPrivs\t1", who+"Seccomp\t2")
	}
	if hole := judgeReport(strings.Join(good, "\n") + "\n"); hole != "" {
		t.Fatalf("a valid report: %s", hole)
	}
	// A report without any of its lines, or with these lines instead, is not accepted.
	for i, line := range good {
		if judgeReport(strings.Join(append(append([]string{}, good[:i]...), good[i+1:]...), "\n")) == "" {
			t.Errorf("%q does not matter", line)
		}
	}
	for _, bad := range []string{
		"uid_map\t0 0 4294967295", "uid_map\t1000 0 2", "status.CapEff\t0000000000000400", "init.CapPrm\t000001ffffffffff",
		"init.NoNewPrivs\t0", "status.Seccomp\t0", "init.Seccomp\t0", "unix\t", "sysctl\t", "visible./home\t",
	} {
		if judgeReport(strings.Join(append(append([]string{}, good...), bad), "\n")) == "" {
			t.Errorf("%q is believed", bad)
		}
	}
	if judgeReport("") == "" {
		t.Error("an empty report is accepted")
	}
}

func TestVersions(t *testing.T) {
	t.Parallel()
	for version, want := range map[string]bool{
		"bubblewrap 0.8.0": true, "bubblewrap 0.11.2": true, "bubblewrap 1.0": true, "bubblewrap 0.10.0-rc1": true,
		"bubblewrap 0.7.0": false, "bubblewrap 0": false, "bubblewrap": false, "": false, "0.8.0": false, "bubblewrap x.y": false,
	} {
		if isRecent(version) != want {
			t.Errorf("%q: %v", version, !want)
		}
	}
}

func TestWords(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{30 * time.Second: "30 s", time.Second / 2: "0.5 s", 90 * time.Second: "1 min 30 s",
		10 * time.Minute: "10 min"} {
		if got := describeDuration(d); got != want {
			t.Errorf("%s is %q, want %q", d, got, want)
		}
	}
	for n, want := range map[int64]string{16 * mib: "16 MiB", 64 << 10: "64 KiB", 100: "100 bytes"} {
		if got := describeSize(n); got != want {
			t.Errorf("%d is %q, want %q", n, got, want)
		}
	}
}
