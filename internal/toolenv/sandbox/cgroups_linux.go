package sandbox

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// cgroups is the part of the cgroup v2 hierarchy that the service may divide. The service's own
// group contains one group for the service and one with the groups of commands.
type cgroups struct {
	commands string // the directory with the groups of commands
}

const (
	serviceGroup  = "parley-service"
	commandsGroup = "parley-commands"
	// commandsWeight is the share of the processor that all commands have together while the
	// service, with 100, needs it too.
	commandsWeight = "50"
)

// openCgroups divides the service's own group and tests a command's group.
func openCgroups(bwrap string) (*cgroups, error) {
	self, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return nil, err
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	dir, err := ownCgroup(string(self), string(mounts))
	if err != nil {
		return nil, err
	}
	g := &cgroups{commands: filepath.Join(dir, commandsGroup)}
	if err := divideGroups(dir); err != nil {
		return nil, err
	}
	g.removeStale()
	return g, g.tryProgram(bwrap)
}

// ownCgroup returns the directory of the group that the service may divide.
func ownCgroup(self, mounts string) (string, error) {
	var path string
	for line := range strings.Lines(self) {
		if rest, ok := strings.CutPrefix(line, "0::"); ok {
			path = strings.TrimSpace(rest)
		}
	}
	if path == "" || strings.HasPrefix(path, "/..") {
		return "", errors.New("the service is in no group of cgroup v2")
	}
	if filepath.Base(path) == serviceGroup { // a process that started this one has divided the group
		path = filepath.Dir(path)
	}
	for line := range strings.Lines(mounts) {
		fields := strings.Fields(line)
		i := slices.Index(fields, "-")
		if i < 5 || i+1 >= len(fields) || fields[i+1] != "cgroup2" {
			continue
		}
		if rel, err := filepath.Rel(fields[3], path); err == nil && filepath.IsLocal(rel) {
			return filepath.Join(fields[4], rel), nil
		}
	}
	return "", errors.New("cgroup v2 is not mounted")
}

// divideGroups makes the groups below the service's own group.
func divideGroups(dir string) error {
	controllers, err := os.ReadFile(filepath.Join(dir, "cgroup.controllers"))
	if err != nil {
		return err
	}
	there := strings.Fields(string(controllers))
	for _, needed := range []string{"memory", "pids"} {
		if !slices.Contains(there, needed) {
			return fmt.Errorf("%s does not have the controller %s of cgroup v2", dir, needed)
		}
	}
	// Only the root group of the machine may have processes beside groups with limits.
	if _, err := os.Stat(filepath.Join(dir, "cgroup.type")); err == nil {
		if err := moveOut(dir); err != nil {
			return err
		}
	}
	commands := filepath.Join(dir, commandsGroup)
	if err := makeGroup(commands); err != nil {
		return err
	}
	for _, path := range []string{dir, commands} {
		control := filepath.Join(path, "cgroup.subtree_control")
		if err := writeValue(control, "+memory +pids"); err != nil {
			return err
		}
		_ = writeValue(control, "+cpu") // commands run without a weight, too
	}
	_ = writeValue(filepath.Join(commands, "cpu.weight"), commandsWeight)
	return nil
}

func makeGroup(path string) error {
	if err := os.Mkdir(path, 0o755); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	return nil
}

// moveOut moves the processes of a group into the service's own group below it. They must be the
// service's, or all those of a container.
func moveOut(dir string) error {
	service := filepath.Join(dir, serviceGroup)
	for range 100 { // processes that start meanwhile
		list, err := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
		pids := strings.Fields(string(list))
		if err != nil || len(pids) == 0 {
			return err
		}
		ours := descendants(strconv.Itoa(os.Getpid()))
		for _, pid := range pids {
			if !slices.Contains(ours, pid) && !isTop(dir) {
				return fmt.Errorf("the group %s has other processes than the service's", dir)
			}
		}
		if err := makeGroup(service); err != nil {
			return err
		}
		for _, pid := range pids {
			if err := writeValue(filepath.Join(service, "cgroup.procs"), pid); err != nil && !errors.Is(err, syscall.ESRCH) {
				return err
			}
		}
	}
	return fmt.Errorf("the processes in %s do not end", dir)
}

// isTop reports whether a group is the root that its container sees.
func isTop(dir string) bool {
	_, err := os.Stat(filepath.Join(filepath.Dir(dir), "cgroup.procs"))
	return err != nil
}

// removeStale removes the groups of killed services.
func (g *cgroups) removeStale() {
	list, _ := filepath.Glob(filepath.Join(g.commands, "*-*"))
	for _, path := range list {
		pid, _, _ := strings.Cut(filepath.Base(path), "-")
		if _, err := os.Stat("/proc/" + pid); err != nil {
			_ = os.Remove(path) // only if it is empty
		}
	}
}

// tryProgram starts a process in its own group.
func (g *cgroups) tryProgram(program string) error {
	c, err := g.createGroup(defaults)
	if err != nil {
		return err
	}
	cmd := exec.Command(program, "--version")
	cmd.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(c.dir.Fd())}
	if err := cmd.Run(); err != nil {
		return errors.Join(fmt.Errorf("start a process in a control group: %w", err), c.removeGroup())
	}
	return c.removeGroup()
}
