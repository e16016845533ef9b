//go:build unix

package devdb

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
)

// providePrograms finds the programs for the data directory, or for a new one if major is 0, and
// downloads them if none are installed.
func providePrograms(ctx context.Context, p place, major int, opts Options) (programs, error) {
	all, err := listInstalled(ctx, opts.Bin)
	if err != nil {
		return programs{}, err
	}
	if prog, ok := choosePrograms(all, major); ok {
		return prog, nil
	}
	if major != 0 && len(all) > 0 {
		return programs{}, fmt.Errorf("%s was made by PostgreSQL %d, and here is only %s: install PostgreSQL %d, or set %s=fetch to "+
			"download it, or move the directory away",
			p.data, major, versionList(all), major, BinVariable)
	}
	from, err := sourceFor(p.as, opts)
	if err != nil {
		return programs{}, err
	}
	prog, err := from.fetchPrograms(ctx, major)
	if err != nil {
		return prog, fmt.Errorf("%w, and fetching it failed (%w): install it with `%s`, or set DATABASE_URL", ErrNoPostgres, err,
			installCommand())
	}
	return prog, nil
}

func versionList(all []programs) string {
	var names []string
	for _, prog := range all {
		if name := fmt.Sprintf("%s in %s", prog.version, prog.dir); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return strings.Join(names, ", ")
}

// installCommand returns the command that installs PostgreSQL on this system.
func installCommand() string {
	sudo := "sudo "
	if os.Getuid() == 0 {
		sudo = ""
	}
	if runtime.GOOS == "darwin" {
		return "brew install postgresql@17"
	}
	for _, tool := range []struct{ name, command string }{
		{"apt-get", "apt-get install postgresql"},
		{"dnf", "dnf install postgresql-server"},
		{"yum", "yum install postgresql-server"},
		{"apk", "apk add postgresql"},
		{"pacman", "pacman -S postgresql"},
		{"zypper", "zypper install postgresql-server"},
		{"pkg", "pkg install postgresql17-server"},
	} {
		if _, err := exec.LookPath(tool.name); err == nil {
			return sudo + tool.command
		}
	}
	return "the system's package manager"
}
