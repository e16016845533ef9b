package sandbox_test

import (
	"fmt"
	"os"
)

// attack is what the test's own executable does inside.
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

// attacks print one line for each thing that they tried: its name, a tab and the error.
var attacks = map[string]func(args []string) error{
	"get": get,
}

// with is the command line of an attack.
func with(name string, args ...string) []string {
	return append([]string{"/run/init", "attack", name}, args...)
}

func try(name string, err error) {
	fmt.Fprintf(os.Stdout, "%s\t%v\n", name, err)
}
