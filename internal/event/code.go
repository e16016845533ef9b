package event

// Code is the reason why a turn failed. The error event and the blocking response contain the same
// word.
type Code string

const (
	SessionGone             Code = "session_gone"
	Canceled                Code = "canceled"
	TimedOut                Code = "timed_out"
	MaxTurnsExceeded        Code = "max_turns_exceeded"
	ModelError              Code = "model_error"
	ModelOverloaded         Code = "model_overloaded"
	ContentRefused          Code = "content_refused"
	StructuredOutputInvalid Code = "structured_output_invalid"
	SkillFailed             Code = "skill_failed"
	BudgetExceeded          Code = "budget_exceeded"
	RunnerLost              Code = "runner_lost"
	AgentsStopped           Code = "agents_stopped"
	InternalError           Code = "internal_error"
)

// Codes lists every code, in the order of the documentation.
var Codes = []Code{
	SessionGone, Canceled, TimedOut, MaxTurnsExceeded, ModelError, ModelOverloaded,
	ContentRefused, StructuredOutputInvalid, SkillFailed, BudgetExceeded, RunnerLost, AgentsStopped, InternalError,
}

// Recoverable reports whether sending the message again can succeed.
func (c Code) Recoverable() bool {
	switch c {
	case SessionGone, Canceled, ContentRefused, BudgetExceeded:
		return false
	}
	return true
}

// Failure returns the error event of a code.
func (c Code) Failure(message string) Error {
	return Error{Code: c, Message: message, Recoverable: c.Recoverable()}
}
