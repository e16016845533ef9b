// Package permission decides which tool calls run, which ask a person first and
// which are refused. It owns the rules for that: how a workspace treats each tool,
// and its allow-list, the patterns that people have agreed to.
//
// A pattern is matched against what a call would do, never against its text: the
// words that bash would pass on, the cleaned path, the parsed address. Whatever
// cannot be read without doubt is matched by nothing and therefore asks. The
// allow-list is a convenience for people; the sandbox stays the boundary.
package permission

// Verdict is what becomes of a tool call.
type Verdict int

// Ask is the zero value: without a rule a call needs an approval.
const (
	Ask Verdict = iota
	Allow
	Deny
)

var verdicts = map[Verdict]string{Ask: "ask", Allow: "allow", Deny: "deny"}

// String is the verdict in the words of the command line.
func (v Verdict) String() string { return verdicts[v] }

// ParseVerdict reads allow, ask or deny.
func ParseVerdict(s string) (v Verdict, ok bool) {
	for v, name := range verdicts {
		if name == s {
			return v, true
		}
	}
	return Ask, false
}
