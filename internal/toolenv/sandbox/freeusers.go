package sandbox

import (
	"os"
	"strconv"
	"strings"
)

// Ids that neither distributions nor systemd assign, to users or temporarily.
const (
	firstFree = 60600
	lastFree  = 61183
)

// FreeUsers returns n ids that are not assigned to a user of this machine and own no process, or
// the zero value if it finds none.
func FreeUsers(n int) UserRange {
	passwd, _ := os.ReadFile("/etc/passwd")
	subordinate, _ := os.ReadFile("/etc/subuid")
	taken := append(usersIn(string(passwd)), rangesIn(string(subordinate))...)
	return freeUsers(n, append(taken, usersRunning()...))
}

func freeUsers(n int, taken []UserRange) UserRange {
next:
	for first := firstFree; first+n-1 <= lastFree; first += n {
		for _, t := range taken {
			if first <= t.Last && t.First <= first+n-1 {
				continue next
			}
		}
		return UserRange{first, first + n - 1}
	}
	return UserRange{}
}

// usersIn parses the ids in the format of /etc/passwd.
func usersIn(passwd string) (list []UserRange) {
	for line := range strings.Lines(passwd) {
		if fields := strings.Split(line, ":"); len(fields) > 2 {
			if id, err := strconv.Atoi(fields[2]); err == nil {
				list = append(list, UserRange{id, id})
			}
		}
	}
	return list
}

// rangesIn parses the ranges in the format of /etc/subuid.
func rangesIn(subuid string) (list []UserRange) {
	for line := range strings.Lines(subuid) {
		fields := strings.Split(strings.TrimSpace(line), ":")
		if len(fields) != 3 {
			continue
		}
		first, err := strconv.Atoi(fields[1])
		count, err2 := strconv.Atoi(fields[2])
		if err == nil && err2 == nil {
			list = append(list, UserRange{first, first + count - 1})
		}
	}
	return list
}
