package ratelimit

// Addresses returns the number of remembered addresses.
func (f *Failures) Addresses() int { return len(f.fullAt) }
