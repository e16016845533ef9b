package ratelimit

// Addresses is how many addresses are remembered.
func (f *Failures) Addresses() int { return len(f.fullAt) }
