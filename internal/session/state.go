package session

// State is the state of a turn.
type State string

const (
	LinedUp   State = "lined_up"  // it waits for the session's turn to end
	Queued    State = "queued"    // a River job will run it
	Running   State = "running"   // a worker holds its lease
	Waiting   State = "waiting"   // it has a question; no worker holds it
	Completed State = "completed" // answered
	Failed    State = "failed"    // ended by an error
	Canceled  State = "canceled"  // ended by a caller
)

// States lists every state.
var States = []State{LinedUp, Queued, Running, Waiting, Completed, Failed, Canceled}

// IsActive reports whether the turn has not ended.
func (s State) IsActive() bool { return s == LinedUp || s == Queued || s == Running || s == Waiting }

// Trigger is an event that changes the state of a turn.
type Trigger string

const (
	Advance  Trigger = "advance"  // the turns before it have ended
	Claim    Trigger = "claim"    // a worker takes it
	Release  Trigger = "release"  // its worker releases it, or is dead
	Park     Trigger = "park"     // it needs input
	Resume   Trigger = "resume"   // the input has arrived or has expired
	Complete Trigger = "complete" // its worker has answered
	Fail     Trigger = "fail"     // its worker has failed
	Cancel   Trigger = "cancel"   // a user ends it
)

// Triggers lists every trigger.
var Triggers = []Trigger{Advance, Claim, Release, Park, Resume, Complete, Fail, Cancel}

// matrix is the state machine: any transition that it does not list is impossible.
var matrix = map[Trigger]map[State]State{
	Advance:  {LinedUp: Queued},
	Claim:    {Queued: Running},
	Release:  {Running: Queued},
	Park:     {Running: Waiting},
	Resume:   {Waiting: Queued},
	Complete: {Running: Completed},
	Fail:     {Running: Failed, Queued: Failed},
	Cancel:   {LinedUp: Canceled, Queued: Canceled, Running: Canceled, Waiting: Canceled},
}

// Next returns the state after a trigger; ok is false if the trigger is impossible in this state.
func Next(from State, t Trigger) (to State, ok bool) {
	to, ok = matrix[t][from]
	return to, ok
}

// fromStates lists the states in which a trigger is possible, for the WHERE of its UPDATE.
func (t Trigger) fromStates() []string {
	var states []string
	for _, s := range States {
		if _, ok := matrix[t][s]; ok {
			states = append(states, string(s))
		}
	}
	return states
}

// nextState returns the state after a trigger. Every trigger leads to exactly one state.
func (t Trigger) nextState() State {
	for _, s := range matrix[t] {
		return s
	}
	return ""
}

// Status is the state of a session for clients.
type Status string

const (
	NotStarted Status = "not_started"
	Thinking   Status = "thinking"
	Done       Status = "completed"
)

// StatusOf returns the session's status by the state of its newest turn, "" for none.
func StatusOf(s State) Status {
	switch {
	case s == "":
		return NotStarted
	case s.IsActive():
		return Thinking
	}
	return Done
}
