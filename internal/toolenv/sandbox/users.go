package sandbox

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
)

// UserRange is a range of user ids that are used for commands only. The zero value is empty.
type UserRange struct {
	First, Last int
}

// UnmarshalText parses an id, such as 64001, or a range, such as 60600-60663.
func (r *UserRange) UnmarshalText(text []byte) error {
	first, last, ranged := strings.Cut(string(text), "-")
	if !ranged {
		last = first
	}
	from, err := strconv.ParseInt(first, 10, 32)
	to, err2 := strconv.ParseInt(last, 10, 32)
	if err != nil || err2 != nil || from <= 0 || to < from || to-from >= maxUsers {
		return fmt.Errorf("%q is neither a user id, such as 64001, nor a range of at most %d, such as 60600-60663", text, maxUsers)
	}
	*r = UserRange{int(from), int(to)}
	return nil
}

// maxUsers exceeds the number of commands that ever run at a time.
const maxUsers = 65536

// String formats the range as UnmarshalText parses it.
func (r UserRange) String() string {
	switch {
	case r.First <= 0:
		return ""
	case r.First == r.Last:
		return strconv.Itoa(r.First)
	}
	return fmt.Sprintf("%d-%d", r.First, r.Last)
}

// Len returns the number of ids.
func (r UserRange) Len() int {
	if r.First <= 0 {
		return 0
	}
	return r.Last - r.First + 1
}

func (r UserRange) has(id int) bool { return r.Len() > 0 && id >= r.First && id <= r.Last }

// users prevents concurrent commands from sharing a user id while enough ids are free: the kernel
// counts pipes, watches and other resources per user.
type users struct {
	UserRange

	mu       sync.Mutex
	assigned int         // number of folders so far
	running  map[int]int // commands by user id
}

// assign returns the id for a new folder, in rotation.
func (u *users) assign() int {
	u.mu.Lock()
	defer u.mu.Unlock()
	id := u.First + u.assigned%u.Len()
	u.assigned++
	return id
}

// acquire returns the id for a command: the preferred one, unless another command runs as that and
// another id has fewer. The caller releases it.
func (u *users) acquire(preferred int) int {
	u.mu.Lock()
	defer u.mu.Unlock()
	best := preferred
	if !u.has(preferred) {
		best = u.First
	}
	for id := u.First; id <= u.Last && u.running[best] > 0; id++ {
		if u.running[id] < u.running[best] {
			best = id
		}
	}
	if u.running == nil {
		u.running = make(map[int]int)
	}
	u.running[best]++
	return best
}

// release ends a command's use of an id.
func (u *users) release(id int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.running[id]--; u.running[id] <= 0 {
		delete(u.running, id)
	}
}
