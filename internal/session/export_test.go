package session

import "context"

// ClaimTurns makes claims in one transaction.
func ClaimTurns(ctx context.Context, s *Store, requests []ClaimRequest) ([]Claimed, error) {
	claims := make([]*claimChange, len(requests))
	for i, r := range requests {
		claims[i] = &claimChange{ClaimRequest: r}
	}
	err := s.claimTurns(ctx, claims)
	outcomes := make([]Claimed, len(claims))
	for i, c := range claims {
		outcomes[i] = c.outcome
	}
	return outcomes, err
}

// EndsWaiting returns how many ends wait for the next transaction.
func EndsWaiting(s *Store) int { return s.ends.waiting() }

func (g *group[C]) waiting() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.queue)
}

// BeginsWaiting returns how many first turns wait for the next transaction.
func BeginsWaiting(s *Store) int { return s.begins.waiting() }
