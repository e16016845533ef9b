package anthropic

import (
	"encoding/json"
	"regexp"
	"slices"
	"strconv"

	"github.com/parley-server/parley/internal/model"
)

// named matches a model of Anthropic: claude-opus-4-20250514, claude-3-7-sonnet-latest,
// claude-sonnet-4-5.
var named = regexp.MustCompile(`^claude-(?:[a-z]+-)?(\d{1,2})(?:-(\d{1,2}))?(?:-|$)`)

// version is the version of a model of Anthropic, 4.5 as 405. It is 0 for any other model.
type version int

// The first versions with a property.
const (
	readsFiles     version = 305 // it takes PDFs
	thinksByBudget version = 307 // it takes a budget of tokens for thinking
	thinksByEffort version = 406 // it decides how much it thinks, and takes no prefill
	fixedSampling  version = 407 // it takes neither temperature nor top_p
)

func versionOf(name string) version {
	m := named.FindStringSubmatch(name)
	if m == nil {
		return 0
	}
	major, _ := strconv.Atoi(m[1]) // digits
	minor, _ := strconv.Atoi(m[2]) // digits, or nothing
	return version(major*100 + minor)
}

// thinkingBudgets are the tokens for each effort.
var thinkingBudgets = map[string]int64{"minimal": 1024, "low": 4096, "medium": 8192, "high": 16_384}

// minThinking is the protocol's minimum of a budget.
const minThinking = 1024

// addEffort makes the model think as much as the request wants, if it can. A model with a budget
// must begin a step with its thinking, so that a turn which began without continues without.
func (m *Model) addEffort(p *params, req model.Request) {
	v, effort := versionOf(m.service.Model), req.Effort
	if effort == "" {
		return
	}
	if v >= thinksByBudget && v < thinksByEffort {
		budget := min(thinkingBudgets[effort], p.MaxTokens/2)
		if budget >= minThinking && !req.MustCall && !m.lacksThinking(req.Messages) {
			p.Thinking = &thinkingMode{Type: "enabled", BudgetTokens: budget} // with summaries, whether they are wanted or not
		}
		return
	}
	if effort == "minimal" {
		effort = "low"
	}
	p.OutputConfig = &outputConfig{effort}
	if v >= thinksByEffort && !req.MustCall {
		p.Thinking = &thinkingMode{Type: "adaptive"}
		if req.Summaries {
			p.Thinking.Display = "summarized"
		}
	}
}

// lacksThinking reports whether the conversation ends with results of calls that the model made, or
// seems to have made, without thinking.
func (m *Model) lacksThinking(history []model.Message) bool {
	last := len(history) - 1
	if last < 0 || history[last].Role != model.ToolRole {
		return false
	}
	for _, msg := range slices.Backward(history) {
		if msg.Role == model.Assistant {
			return !m.service.HasReasoning(msg)
		}
	}
	return true
}

// thinkingBlock is a block as the protocol has it, thinking or redacted_thinking.
type thinkingBlock struct {
	Type      string `json:"type"`
	Thinking  string `json:"thinking,omitempty"`
	Signature string `json:"signature,omitempty"`
	Data      string `json:"data,omitempty"`
}

// thinkingBlocks returns the thinking at one place of a reply.
func (m *Model) thinkingBlocks(msg model.Message, afterText bool, calls int) (out []block) {
	for _, raw := range m.service.ReasoningAt(msg, afterText, calls) {
		var b thinkingBlock
		switch {
		case json.Unmarshal(raw, &b) != nil:
		case b.Type == "redacted_thinking":
			out = append(out, block{Type: b.Type, Data: b.Data})
		default:
			out = append(out, block{Type: "thinking", Thinking: &b.Thinking, Signature: &b.Signature})
		}
	}
	return out
}
