package sandbox

import (
	"fmt"
	"strings"
)

var (
	rootWithoutUser = &Unavailable{
		Reason: "The service is root, and a command is never run as root.",
		Remedy: "Set PARLEY_SANDBOX_UID to ids of users that nothing else runs as, such as 60600-60663, or run the service as another user.",
	}
	noChildren = &Unavailable{
		Reason: "The kernel does not list the children of a process, so the memory of a command cannot be bounded.",
		Remedy: "Use a kernel that was built with CONFIG_PROC_CHILDREN, and mount /proc.",
	}
)

const install = "Install bubblewrap 0.8 or newer, for example with apt install bubblewrap or dnf install bubblewrap."

func bwrapMissing(name string) *Unavailable {
	return &Unavailable{Reason: fmt.Sprintf("Bubblewrap was not found: there is no program %s.", name), Remedy: install}
}

func bwrapOld(path, version string) *Unavailable {
	return &Unavailable{
		Reason: fmt.Sprintf("%s is not bubblewrap 0.8 or newer: its version is %q.", path, version), Remedy: install,
	}
}

// unavailableRoot returns the error for a prepared system that cannot be used; how is the reason.
func unavailableRoot(root, how string) *Unavailable {
	return &Unavailable{
		Reason: fmt.Sprintf("PARLEY_SANDBOX_ROOT is %s, which %s.", root, how),
		Remedy: "Set PARLEY_SANDBOX_ROOT to a directory with a prepared system, whose programs are in its usr or bin, or leave it " +
			"empty: commands then have the programs of the host.",
	}
}

func unavailableDir(err error) *Unavailable {
	return &Unavailable{
		Reason: fmt.Sprintf("The directory for the files of commands cannot be made: %v.", err),
		Remedy: "Set PARLEY_RUNNER_DIR to a directory that the service may write.",
	}
}

func unavailablePath(users UserRange, path string) *Unavailable {
	return &Unavailable{
		Reason: fmt.Sprintf("Commands run as user %s, which cannot reach the directory %s.", users, path),
		Remedy: "Set PARLEY_RUNNER_DIR to a directory that, like all above it, lets others pass (chmod o+x).",
	}
}

// unavailableCgroups returns the error for a machine without control groups for commands.
func unavailableCgroups(err error) *Unavailable {
	return &Unavailable{
		Reason: fmt.Sprintf("The kernel does not limit the memory of a command as a whole: %v.", err),
		Remedy: "Run the service in a systemd unit with Delegate=yes, or in a container with a cgroup namespace and a writable " +
			"/sys/fs/cgroup, on a machine whose controllers are all in cgroup v2 (systemd.unified_cgroup_hierarchy=1).",
	}
}

// facts are the facts about the machine that determine the remedy.
type facts struct {
	MaxUserNamespaces string // /proc/sys/user/max_user_namespaces; empty: it does not exist
	UnprivilegedClone string // /proc/sys/kernel/unprivileged_userns_clone
	AppArmorRestricts string // /proc/sys/kernel/apparmor_restrict_unprivileged_userns
	Container         bool
}

// unavailableSandbox returns the error for a failure of bubblewrap; words is its output.
func unavailableSandbox(f facts, words string) *Unavailable {
	return &Unavailable{Reason: fmt.Sprintf("Bubblewrap could not make a sandbox (%s).", words), Remedy: remedyFor(f, words)}
}

func remedyFor(f facts, words string) string {
	const (
		container = "Run the container with --security-opt seccomp=FILE, where FILE is Docker's default profile that also allows clone, " +
			"unshare, mount, umount2, pivot_root and sethostname, and with --security-opt systempaths=unconfined"
		apparmor = "where the host has AppArmor, also with --security-opt apparmor=unconfined or a profile that allows mount"
	)
	says := func(texts ...string) bool {
		for _, text := range texts {
			if strings.Contains(words, text) {
				return true
			}
		}
		return false
	}
	switch {
	case f.MaxUserNamespaces == "0":
		return "Allow user namespaces: sysctl -w user.max_user_namespaces=15000, and the same in /etc/sysctl.d."
	case f.UnprivilegedClone == "0":
		return "Allow user namespaces: sysctl -w kernel.unprivileged_userns_clone=1, and the same in /etc/sysctl.d."
	case says("(ENOSPC)"):
		return "Allow more namespaces: raise the values in /proc/sys/user, such as sysctl -w user.max_user_namespaces=15000."
	case says("mount proc", "/proc/sys/user"):
		return "Run the container with --security-opt systempaths=unconfined: its runtime covers parts of /proc, and so a new /proc is refused."
	case f.Container && says("pivot_root", "make / slave", "Failed to mount"):
		return container + "; " + apparmor + "."
	case f.Container && says("namespace", "uid map"):
		return container + "."
	case f.AppArmorRestricts == "1" && says("namespace", "uid map", "RTM_NEWADDR"):
		return "Load the AppArmor profile for bubblewrap: apt install apparmor-profiles, " +
			"copy /usr/share/apparmor/extra-profiles/bwrap-userns-restrict to /etc/apparmor.d and run apparmor_parser -r on the copy."
	case says("bind port"):
		return "Set PARLEY_SANDBOX_TRANSPARENT=false, and programs reach the network through their proxy alone; or give the service, " +
			"which is root, the capability CAP_NET_BIND_SERVICE."
	case says("Unexpected capabilities"):
		return "Start the service without capabilities of its own: as root with PARLEY_SANDBOX_UID, or as a user without them."
	case says("namespace"):
		return "Use a kernel that lets users make user namespaces (CONFIG_USER_NS)."
	}
	return "Run the same bwrap command by hand to see what the system refuses, and see that this user may make user namespaces."
}

// unavailableLeak returns the error for a sandbox that starts but does not contain commands.
func unavailableLeak(hole string) *Unavailable {
	return &Unavailable{
		Reason: "A sandbox was made, but " + hole + ".",
		Remedy: "This must not be: see that bwrap is the distribution's own, that PARLEY_RUNNER_DIR is not below /usr, and report it.",
	}
}
