package permission

import (
	"encoding/json"
	"slices"

	"github.com/parley-server/parley/internal/fault"
)

// kind describes a tool to the engine. A call of an unknown tool needs approval. The engine must
// know every member of the input that the tool reads: a call with an unknown member needs approval.
type kind struct {
	// byDefault judges a call if the workspace has not set a rule for the tool.
	byDefault func(input json.RawMessage, scopes []string) (Verdict, string)
	rule      string // byDefault in words
	fixed     bool   // no rule can be set
	scope     string // the scope of keys that may allow a call; "": no further scope
	// parse parses a pattern's argument; nil if the tool has no patterns, for the reason in
	// unmatched.
	parse     func(argument string) (matcher, []fault.Violation)
	unmatched string
	example   string
	suggest   func(input json.RawMessage) matcher
}

var tools = map[string]kind{
	"read": reads, "grep": reads, "search": reads, "wiki_read": reads,
	"attach_file": {byDefault: alwaysVerdict(Allow), rule: "allow", unmatched: "attach_file needs no pattern."},
	"request_secret": {byDefault: alwaysVerdict(Ask), rule: "ask", fixed: true,
		unmatched: "request_secret always asks: a secret comes from a person."},
	"wiki_write": {
		byDefault: wikiWrite, rule: "allow with the scope wiki:write, else ask", scope: wikiScope,
		parse: parsePage, example: "wiki_write(handbook/**)", suggest: suggestPage,
	},
	"write": {
		byDefault: writeFile, rule: "allow, but ask for names that begin with a dot, and for HEAD",
		parse: parseFile, example: "write(reports/**)", suggest: suggestFile,
	},
	"bash": {byDefault: alwaysVerdict(Ask), rule: "ask", parse: parseBash, example: "bash(git diff *)", suggest: suggestBash},
	"http_request": {
		byDefault: httpRequest, rule: "allow GET and HEAD without a credential, else ask",
		parse: parseRequest, example: "http_request(GET api.example.com/**)", suggest: suggestRequest,
	},
}

// ownKinds judge the workspace's own tools by their labels.
var ownKinds = map[Label]kind{
	ReadOnly: {byDefault: labelled(Allow, "The tool only reads, by its label."), rule: "allow"},
	Changes:  {byDefault: labelled(Ask, "The tool changes something, by its label."), rule: "ask"},
	"":       {byDefault: labelled(Deny, "The tool is disabled."), rule: "deny"},
}

func labelled(v Verdict, reason string) func(json.RawMessage, []string) (Verdict, string) {
	return func(json.RawMessage, []string) (Verdict, string) { return v, reason }
}

var reads = kind{byDefault: alwaysVerdict(Allow), rule: "allow", unmatched: "Calls that read the workspace's knowledge need no pattern."}

func alwaysVerdict(v Verdict) func(json.RawMessage, []string) (Verdict, string) {
	reason := map[Verdict]string{Ask: "The tool asks unless the allow-list has a pattern for the call.",
		Allow: "The tool needs no approval."}[v]
	return func(json.RawMessage, []string) (Verdict, string) { return v, reason }
}

// wikiScope is the scope for writing the wiki.
const wikiScope = "wiki:write"

// IsTool reports whether a built-in tool has this name.
func IsTool(name string) bool {
	_, known := tools[name]
	return known
}

// RequiredScope returns the scope that a key needs to allow a call of a tool, or "". A key cannot
// allow an action that it may not do itself.
func RequiredScope(tool string) string { return tools[tool].scope }

// wikiWrite allows the call if the sender of the message may write the wiki.
func wikiWrite(_ json.RawMessage, scopes []string) (Verdict, string) {
	if slices.Contains(scopes, wikiScope) {
		return Allow, "The key that sent the message has the scope wiki:write."
	}
	return Ask, "The key that sent the message lacks the scope wiki:write."
}

func writeFile(input json.RawMessage, _ []string) (Verdict, string) {
	p, ok := readFile(input)
	switch {
	case !ok:
		return Ask, "The path is not plain."
	case obeyedPath(p):
		return Ask, "A name that begins with a dot, or HEAD, can change what other programs do."
	}
	return Allow, "The file is the session's own."
}

func httpRequest(input json.RawMessage, _ []string) (Verdict, string) {
	c, ok := readCall(input)
	switch {
	case !ok:
		return Ask, "The request is not plain."
	case !c.isReadOnly():
		return Ask, "The request does more than fetch, or carries a credential."
	}
	return Allow, "The request only fetches."
}

// Suggest proposes a pattern that would have allowed a call, or "" if no pattern can. The pattern
// is narrow: it leaves operands open only for read-only commands.
func Suggest(tool string, input json.RawMessage) string {
	t := tools[tool]
	if t.suggest == nil {
		return ""
	}
	what := t.suggest(input)
	if what == nil {
		return ""
	}
	// A proposed pattern must be accepted when a decision contains it.
	p, err := Parse(Pattern{tool: tool, what: what}.String())
	if err != nil || !p.Matches(tool, input) {
		return ""
	}
	return p.String()
}
