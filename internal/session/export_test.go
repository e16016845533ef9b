package session

// EndsWaiting returns how many ends wait for the next transaction.
func EndsWaiting(s *Store) int { return s.ends.waiting() }

func (g *group[C]) waiting() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.queue)
}

// BeginsWaiting returns how many first turns wait for the next transaction.
func BeginsWaiting(s *Store) int { return s.begins.waiting() }
