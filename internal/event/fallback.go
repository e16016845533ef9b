package event

// ModelFallback records that a model failed before the first text of a step, and that another one
// answers for the rest of the turn.
type ModelFallback struct {
	From   string         `json:"from"` // full names
	To     string         `json:"to"`
	Reason FallbackReason `json:"reason"`
}

// FallbackReason is why a model did not answer.
type FallbackReason string

const (
	Overloaded   FallbackReason = "overloaded"    // it was overloaded, or limited the rate of requests
	NotReachable FallbackReason = "not_reachable" // its provider did not answer, or broke off
	NotUsable    FallbackReason = "not_usable"    // no quota, or a problem that an administrator must solve
)
