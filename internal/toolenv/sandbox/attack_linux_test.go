package sandbox_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/parley-server/parley/internal/toolenv/sandbox"
)

// attacks are functions that the test's own executable runs inside the sandbox, as a command. They
// print a line for each attempt: its name, a tab and its outcome.
var attacks = map[string]func(args []string) error{
	"allocate": tryAllocate,
	"calls":    tryCalls,
	"connect":  tryConnect,
	"deep":     makeDeep,
	"get":      get,
	"hoard":    hoard,
	"look":     tryLook,
	"map":      tryMap,
	"names":    makeNames,
	"open":     tryOpen,
	"outlive":  tryToOutlive,
	"orphans":  makeOrphans,
	"settings": trySettings,
	"sockets":  trySockets,
	"spawn":    spawn,
	"foreign":  tryForeign,
}

// attack is main for the attacks.
func attack(name string, args []string) int {
	do, ok := attacks[name]
	if !ok {
		fmt.Println("there is no attack", name)
		return 2
	}
	if err := do(args); err != nil {
		fmt.Println(err)
		return 1
	}
	return 0
}

// with returns the command line of an attack.
func with(name string, args ...string) []string {
	return append([]string{"/run/init", "attack", name}, args...)
}

func tried(name string, err error) {
	if err == nil {
		fmt.Println(name + "\tdone")
		return
	}
	fmt.Println(name + "\t" + err.Error())
}

// attempt runs an attack and returns the outcome of each attempt.
func attempt(t *testing.T, s *sandbox.Sandbox, argv []string) map[string]string {
	t.Helper()
	r, out := run(t, s, sandbox.Command{Argv: argv})
	if r.Exit != 0 || r.Killed != "" {
		t.Fatalf("the attack ended with %+v: %s", r, out)
	}
	ends := make(map[string]string)
	for line := range strings.Lines(out) {
		name, end, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		if !ok {
			t.Fatalf("the attack printed %q", line)
		}
		ends[name] = end
	}
	if len(ends) == 0 {
		t.Fatal("the attack tried nothing")
	}
	return ends
}
