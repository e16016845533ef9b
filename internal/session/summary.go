package session

import (
	"slices"

	"github.com/parley-server/parley/db"
	"github.com/parley-server/parley/internal/event"
)

// ToolCall is a tool call as message lists show it. OK is null while it runs.
type ToolCall struct {
	Tool      string `json:"tool"`
	Summary   string `json:"summary"`
	OK        *bool  `json:"ok"`
	ToolUseID string `json:"tool_use_id"`
	Truncated bool   `json:"truncated"`
}

// summary is the aggregate of a turn's log.
type summary struct {
	ToolCalls  []ToolCall
	References []event.Reference
	Usage      *event.Usage
	Replies    []int64 // their seqs
	Attempts   int
}

// summarizeLog folds the log of one turn, except its text. The cost is known only if the cost of
// every step is.
func summarizeLog(log []db.TurnEventsRow) (summary, error) {
	sum := summary{ToolCalls: []ToolCall{}, References: []event.Reference{}, Replies: []int64{}}
	for _, r := range log {
		body, err := event.Decode(event.Kind(r.Kind), r.Data)
		if err != nil {
			return sum, err
		}
		sum.addEvent(r.Seq, body)
	}
	return sum, nil
}

// addEvent adds the next event of the log.
func (s *summary) addEvent(seq int64, body event.Body) {
	switch b := body.(type) {
	case event.Started:
		s.Attempts++
	case event.ToolUse:
		s.ToolCalls = append(s.ToolCalls, ToolCall{Tool: b.Tool, Summary: b.Summary, ToolUseID: b.ToolUseID})
	case event.ToolResult:
		for i := range s.ToolCalls {
			if c := &s.ToolCalls[i]; c.ToolUseID == b.ToolUseID {
				c.OK, c.Truncated = &b.OK, b.Truncated
			}
		}
	case event.Reference:
		i := slices.IndexFunc(s.References, func(r event.Reference) bool { return r.Document() == b.Document() })
		switch {
		case i < 0:
			s.References = append(s.References, b)
		case s.References[i].Source == "grep" || s.References[i].Source == "search": // it found lines, and b is the document
			s.References[i] = b
		}
	case event.Compacted:
		s.Usage = addUsage(s.Usage, b.Usage)
	case event.Reply:
		s.Replies = append(s.Replies, seq)
		s.Usage = addUsage(s.Usage, b.Usage)
		if b.Cut {
			s.Usage.FinishReason, s.Usage.Truncated = event.FinishLength, true
		}
	}
}

// addUsage adds the usage of another reply; before is nil for the first.
func addUsage(before *event.Usage, u event.Usage) *event.Usage {
	if before == nil {
		return &u
	}
	sum := event.Usage{InputTokens: before.InputTokens + u.InputTokens, OutputTokens: before.OutputTokens + u.OutputTokens, Model: u.Model,
		CachedInputTokens: before.CachedInputTokens + u.CachedInputTokens, CacheWriteTokens: before.CacheWriteTokens + u.CacheWriteTokens}
	if before.CostUSD != nil && u.CostUSD != nil {
		sum.CostUSD = new(*before.CostUSD + *u.CostUSD)
	}
	return &sum
}

// cutOff gives each call without a result a failed result with this output, and returns the
// results.
func (s *summary) cutOff(output string) (results []event.Body) {
	for i := range s.ToolCalls {
		if c := &s.ToolCalls[i]; c.OK == nil {
			c.OK = new(false)
			results = append(results, event.ToolResult{Tool: c.Tool, Output: output, ToolUseID: c.ToolUseID})
		}
	}
	return results
}
