package devdb

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// BinVariable names the directory of PostgreSQL's programs and replaces the search for them. The
// value "fetch" ignores installed programs.
const BinVariable = "PARLEY_POSTGRES_BIN"

// oldest is the first major version with all features that the schema uses.
const oldest = 15

// programs is one installation of PostgreSQL.
type programs struct {
	dir     string
	version string // "15.18"
	major   int
}

// wellKnown are the directories of Debian, Red Hat, Homebrew, Postgres.app, MacPorts, Alpine and
// FreeBSD. PATH precedes them.
var wellKnown = []string{
	"/usr/lib/postgresql/*/bin",
	"/usr/pgsql-*/bin",
	"/opt/homebrew/opt/postgresql*/bin",
	"/usr/local/opt/postgresql*/bin",
	"/home/linuxbrew/.linuxbrew/opt/postgresql*/bin",
	"/Applications/Postgres.app/Contents/Versions/*/bin",
	"/opt/local/lib/postgresql*/bin",
	"/usr/libexec/postgresql*",
	"/usr/local/pgsql/bin",
	"/usr/bin",
	"/usr/local/bin",
}

// listInstalled lists the installations on this machine, best first: PATH, then the newest. bin is
// Options.Bin.
func listInstalled(ctx context.Context, bin string) ([]programs, error) {
	if dir := cmp.Or(bin, os.Getenv(BinVariable)); dir == "fetch" {
		return nil, nil
	} else if dir != "" {
		prog, err := inspectDir(ctx, dir)
		if err != nil {
			return nil, fmt.Errorf("%s=%s: %w", BinVariable, dir, err)
		}
		return []programs{prog}, nil
	}
	var inPath, known []programs
	for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
		if prog, err := inspectDir(ctx, dir); err == nil {
			inPath = append(inPath, prog)
		}
	}
	for _, pattern := range wellKnown {
		dirs, _ := filepath.Glob(pattern)
		for _, dir := range dirs {
			if prog, err := inspectDir(ctx, dir); err == nil {
				known = append(known, prog)
			}
		}
	}
	slices.SortStableFunc(known, func(a, b programs) int { return cmp.Compare(b.major, a.major) })
	return append(inPath, known...), nil
}

var versionText = regexp.MustCompile(`\b(\d+)(\.\d+)?`)

// inspectDir accepts a directory that contains the two programs that this package uses.
func inspectDir(ctx context.Context, dir string) (programs, error) {
	return inspectAs(ctx, dir, func(*exec.Cmd) {})
}

// inspectAs is inspectDir with a function that prepares the command which prints the version.
func inspectAs(ctx context.Context, dir string, prepare func(*exec.Cmd)) (programs, error) {
	if !filepath.IsAbs(dir) {
		return programs{}, errors.New("not an absolute path")
	}
	for _, name := range []string{"initdb", "postgres"} {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil {
			return programs{}, err
		}
		if info.Mode()&0o111 == 0 {
			return programs{}, fmt.Errorf("%s cannot be executed", filepath.Join(dir, name))
		}
	}
	cmd := exec.CommandContext(ctx, filepath.Join(dir, "postgres"), "--version")
	cmd.Dir = "/"
	prepare(cmd)
	out, err := cmd.Output()
	if err != nil {
		return programs{}, fmt.Errorf("postgres --version: %w", err)
	}
	found := versionText.FindStringSubmatch(string(out))
	if found == nil {
		return programs{}, fmt.Errorf("postgres --version printed %q", strings.TrimSpace(string(out)))
	}
	major, err := strconv.Atoi(found[1])
	return programs{dir: dir, version: found[0], major: major}, err
}

// choosePrograms returns the first installation that fits the data; major 0 is a new directory.
func choosePrograms(all []programs, major int) (programs, bool) {
	for _, prog := range all {
		if prog.major == major || major == 0 && prog.major >= oldest {
			return prog, true
		}
	}
	return programs{}, false
}
