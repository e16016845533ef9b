package task

import (
	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/store/callback"
)

// Encoding encodes the objects of the protocol in one of its versions.
type Encoding interface {
	Frame(Frame) any
	Task(*Task) any // as the response to a request for it
	Sent(*Task) any // as the response to a message
	State(State) string
	Receiver(of uuid.UUID, n callback.Named) any // of a task's updates
	Ends(Frame) bool                             // a stream ends with the frame
	Leaves(State) bool                           // a stream ends in the state, although it is not terminal
}

// V10 is the encoding of version 1.0.
type V10 struct{}

// Frame implements Encoding.
func (V10) Frame(f Frame) any { return f.Update }

// Task implements Encoding.
func (V10) Task(t *Task) any { return t }

// Sent implements Encoding.
func (V10) Sent(t *Task) any { return Update{Task: t} }

// State implements Encoding.
func (V10) State(s State) string { return string(s) }

// Ends implements Encoding.
func (V10) Ends(f Frame) bool {
	return f.StatusUpdate != nil && f.StatusUpdate.Status.State.IsTerminal()
}

// Leaves implements Encoding.
func (V10) Leaves(State) bool { return false }

// receiver is a receiver of a task's updates. Its credentials are sent only to the receiver.
type receiver struct {
	ID             string          `json:"id"`
	TaskID         uuid.UUID       `json:"taskId"`
	URL            string          `json:"url"`
	Authentication *authentication `json:"authentication,omitempty"`
}

type authentication struct {
	Scheme string `json:"scheme"`
}

// Receiver implements Encoding.
func (V10) Receiver(of uuid.UUID, n callback.Named) any {
	r := receiver{ID: n.Name, TaskID: of, URL: n.URL}
	if n.Scheme != "" {
		r.Authentication = &authentication{n.Scheme}
	}
	return r
}
