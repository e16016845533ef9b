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

// summary is what a turn's log comes to.
type summary struct {
	ToolCalls  []ToolCall
	References []event.Reference
	Usage      *event.Usage
	Replies    []int64 // their seqs
}

// summarize folds the log of one turn, text left out. Cost is known only where the
// cost of every step is.
func summarize(log []db.TurnEventsRow) (summary, error) {
	sum := summary{ToolCalls: []ToolCall{}, References: []event.Reference{}, Replies: []int64{}}
	for _, r := range log {
		body, err := event.Decode(event.Kind(r.Kind), r.Data)
		if err != nil {
			return sum, err
		}
		switch b := body.(type) {
		case event.ToolUse:
			sum.ToolCalls = append(sum.ToolCalls, ToolCall{Tool: b.Tool, Summary: b.Summary, ToolUseID: b.ToolUseID})
		case event.ToolResult:
			for i := range sum.ToolCalls {
				if c := &sum.ToolCalls[i]; c.ToolUseID == b.ToolUseID {
					c.OK, c.Truncated = &b.OK, b.Truncated
				}
			}
		case event.Reference:
			if !slices.Contains(sum.References, b) {
				sum.References = append(sum.References, b)
			}
		case event.Reply:
			sum.Replies = append(sum.Replies, r.Seq)
			sum.Usage = add(sum.Usage, b.Usage)
			if b.Cut {
				sum.Usage.FinishReason, sum.Usage.Truncated = event.FinishLength, true
			}
		}
	}
	return sum, nil
}

func add(total *event.Usage, u event.Usage) *event.Usage {
	if total == nil {
		return &u
	}
	sum := event.Usage{InputTokens: total.InputTokens + u.InputTokens, OutputTokens: total.OutputTokens + u.OutputTokens, Model: u.Model}
	if total.CostUSD != nil && u.CostUSD != nil {
		sum.CostUSD = new(*total.CostUSD + *u.CostUSD)
	}
	return &sum
}

// cutOff gives each call without a result a failed one, with this output, and returns the results.
func (s *summary) cutOff(output string) (results []event.Body) {
	for i := range s.ToolCalls {
		if c := &s.ToolCalls[i]; c.OK == nil {
			c.OK = new(false)
			results = append(results, event.ToolResult{Tool: c.Tool, Output: output, ToolUseID: c.ToolUseID})
		}
	}
	return results
}
