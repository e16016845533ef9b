package sandbox

import "path/filepath"

// usersRunning returns the ids that own a process.
func usersRunning() (list []UserRange) {
	processes, _ := filepath.Glob("/proc/[0-9]*")
	for _, process := range processes {
		if id := ownerOf(process); id > 0 {
			list = append(list, UserRange{id, id})
		}
	}
	return list
}
