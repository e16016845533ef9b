package sandbox

import (
	"fmt"
	"os"
)

// killFirst makes the kernel kill a process and its descendants before all others when memory is
// short. New descendants inherit the setting. A command cannot undo it, because its /proc is
// read-only.
func killFirst(pid string) error {
	for _, p := range descendants(pid) {
		if err := os.WriteFile("/proc/"+p+"/oom_score_adj", []byte("1000"), 0); err != nil {
			return fmt.Errorf("offer the command to the kernel's memory killer: %w", err)
		}
	}
	return nil
}

// descendants lists a process and all its descendants.
func descendants(pid string) []string {
	list := []string{pid}
	for i := 0; i < len(list); i++ {
		threads, _ := os.ReadDir("/proc/" + list[i] + "/task")
		for _, thread := range threads {
			list = append(list, childProcesses(list[i], thread.Name())...)
		}
	}
	return list
}
