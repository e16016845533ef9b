package builtin

import "sync"

// remembered is how many one-time failures are remembered at a time.
const remembered = 1024

// memory records the failures that have happened, so that the same request succeeds when it is
// repeated. It is the only state of a guide.
type memory struct {
	mu   sync.Mutex
	keys map[string]bool
}

// isFirst reports whether a failure is due. Called twice in a row it returns true, then false, and
// then has forgotten: the next equal conversation fails again.
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
