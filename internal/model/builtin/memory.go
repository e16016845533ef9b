package builtin

import "sync"

// remembered is how many failures that happen once are known at a time.
const remembered = 1024

// memory knows which failures have happened, so that the same request can succeed
// when it is made again. It is the only state that a guide has.
type memory struct {
	mu   sync.Mutex
	keys map[string]bool
}

// isFirst reports whether a failure is due. Asked twice in a row it answers yes, no,
// and then has forgotten: the next conversation that is equal fails again.
func (m *memory) isFirst(key string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.keys[key] {
		delete(m.keys, key)
		return false
	}
	if m.keys == nil || len(m.keys) >= remembered {
		m.keys = make(map[string]bool)
	}
	m.keys[key] = true
	return true
}
