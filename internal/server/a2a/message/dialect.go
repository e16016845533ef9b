package message

import (
	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/server/a2a/rpc"
	"github.com/parley-server/parley/internal/server/request"
	"github.com/parley-server/parley/internal/store/callback"
)

// Dialect is what a version of the protocol has of its own in a message.
type Dialect struct {
	Name    string
	Role    string   // the role of a user
	Kinds   []string // the content members of a part, of which it has exactly one
	Typed   bool     // a part names its kind, and data are an object
	Push    string   // the field of a configuration with the receiver of updates
	Reports callback.Protocol

	Blocking bool // "blocking" in place of "returnImmediately"
	Schemes  bool // an authentication lists its schemes

	// Fields of other versions, with their names in this one.
	Foreign, ForeignParts map[string]string
}

// V10 is the dialect of version 1.0.
var V10 = Dialect{
	Name: "1.0", Role: "ROLE_USER", Kinds: []string{"text", "data", "url", "raw"}, Push: "taskPushNotificationConfig", Reports: callback.A2A10,
	Foreign:      map[string]string{"blocking": "returnImmediately", "pushNotificationConfig": "taskPushNotificationConfig"},
	ForeignParts: map[string]string{"file": "url"},
}

// Parser parses the parameters of a call.
type Parser struct {
	Dialect
	Params    request.Fields
	Places    map[string]string // JSON Pointers to fields that have another name in other protocols
	Workspace string            // the name in addresses

	unfit *rpc.Error // an output media type that is not supported; nil: none
}

// rejectForeign reports fields that have their name in another version: their values would be lost.
func (p *Parser) rejectForeign(f request.Fields, names map[string]string) bool {
	found := false
	for name, here := range names {
		if f.Has(name) {
			found = true
			f.Add(fault.Violation{Param: f.Pointer(name), Rule: "unknown", Suggestion: here,
				Message: name + " is a field of another version of A2A. In " + p.Name + " it is " + here + "."})
		}
	}
	return found
}
