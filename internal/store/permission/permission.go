// Package permission decides which tool calls run, which need approval and which are denied. It
// owns the rules for that: the setting of each tool in a workspace, and its allow-list, the
// patterns that users have approved.
//
// A pattern is matched against the effect of a call, never against its text: the words that bash
// would pass on, the cleaned path, the parsed address. Ambiguous input matches no pattern and
// therefore needs approval. The allow-list is a convenience for users; the sandbox stays the
// security boundary.
package permission

// Verdict is the decision about a tool call.
type Verdict int

// Ask is the zero value: without a rule a call needs an approval.
const (
	Ask Verdict = iota
	Allow
	Deny
)

var verdicts = map[Verdict]string{Ask: "ask", Allow: "allow", Deny: "deny"}

// String returns the verdict as the command line names it.
func (v Verdict) String() string { return verdicts[v] }

// ParseVerdict parses allow, ask or deny.
func ParseVerdict(s string) (v Verdict, ok bool) {
	for v, name := range verdicts {
		if name == s {
			return v, true
		}
	}
	return Ask, false
}
