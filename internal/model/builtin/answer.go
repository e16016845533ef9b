package builtin

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// The sentences that explain how to use a real model.
const realModel = "Set OPENAI_API_KEY or ANTHROPIC_API_KEY, or OLLAMA_HOST together with PARLEY_MODEL " +
	"(for example PARLEY_MODEL=ollama/llama3.2), and start Parley again."

const (
	slowly = 4  // numbers a second: slow enough to read along
	fluent = 20 // numbers a second
	maxAim = 100_000
)

var (
	greeting = regexp.MustCompile(
		`(?i)^\W*(hi|hello|hey|howdy|greetings|good (morning|afternoon|evening|day))( there| guide| parley| everyone)?\W*$`)
	thanks     = regexp.MustCompile(`(?i)^\W*(thanks?|thank you|thx|cheers)\b.{0,40}$`)
	capability = regexp.MustCompile(
		`(?i)^\W*(help|what can (you|i|we) (do|ask)( here| for (me|us))?|what do you do|who are you|what are you|how can you help( me| ` +
			`us)?|introduce yourself)\W*$`)
	counting = regexp.MustCompile(`(?i)^\W*(?:please |can you |could you )*count\b(.*)\bto (\d{1,9})\b`)
	from     = regexp.MustCompile(`(?i)\bfrom (\d{1,9})\b`)
	slow     = regexp.MustCompile(`(?i)\bslow`)
	creative = regexp.MustCompile(
		`(?i)^\W*(?:please |can you |could you |would you |will you |i want you to |i need you to |help me (?:to )?)*` +
			`(write|draft|compose|translate|rewrite|rephrase|paraphrase|proofread|generate|create|make ` +
			`up|invent|imagine|brainstorm|implement|code|program|refactor|debug|design|predict|role-?play|sing|tell me an? ` +
			`(?:joke|story|poem)|chat with)\b`)
)

// answerMessage returns the reply to a message that is not a script.
func (c conversation) answerMessage() reply {
	q := strings.TrimSpace(c.question)
	switch {
	case q == "" && len(c.attachments) > 0:
		return c.summariseAttachments()
	case q == "" && len(c.unread) > 0:
		return reply{} // the sentences about them
	case q == "" || capability.MatchString(q):
		return c.introductionReply()
	case greeting.MatchString(q):
		return sayText(
			"Hello! I am the built-in guide. Ask me how Parley works or what this workspace's wiki says; “What can you do?” tells you more.")
	case thanks.MatchString(q):
		return sayText("You are welcome.")
	}
	if m := counting.FindStringSubmatch(q); m != nil {
		return countReply(m[1], m[2], slow.MatchString(q))
	}
	if expression, value, ok := evaluateQuestion(q); ok {
		return sayText(expression + " = " + value)
	}
	if page, ok := summaryOf(q); ok {
		return c.summarisePage(page)
	}
	if page, content, ok := writtenPage(q); ok {
		return c.writePage(page, content)
	}
	if approval.MatchString(q) {
		return c.askApproval()
	}
	if r, ok := c.answerCommand(q); ok {
		return r
	}
	if creative.MatchString(q) {
		return sayText(
			"That needs a real language model. I am the built-in guide: I look things up, count and calculate, and I make " +
				"nothing up.\n\n" + realModel)
	}
	return c.searchDocuments()
}

func (c conversation) introductionReply() reply {
	var b strings.Builder
	b.WriteString("I am the built-in guide. I work offline, cost nothing and give the same answer every time. " +
		"I am no language model: I look things up, and I can show everything that a stream does.\n\nTry one of these:\n\n" +
		"- How do I resume a stream?\n")
	if c.offered["wiki_read"] {
		b.WriteString("- Summarise the wiki page onboarding\n")
	}
	if c.offered["wiki_write"] {
		b.WriteString("- Save “Trains first.” to the wiki page travel\n- Ask me for an approval\n")
	}
	if c.offered["search"] {
		b.WriteString("- Any question that this workspace's wiki or files answer\n")
	}
	if c.offered["write"] {
		b.WriteString("- Write “Trains first.” to the file travel.txt, then: Give me the file travel.txt\n")
	}
	if c.offered["bash"] {
		b.WriteString("- Run `ls -la`\n")
	}
	b.WriteString("- What is 12*7+3?\n- Count slowly to 50\n\n" +
		"Lines that begin with @ make me do what a test needs: text at any pace, tool calls, failures. docs/guides/guide-model.md " +
		"lists them.\n\n" +
		"For everything else you want a real model. " + realModel)
	return sayText(b.String())
}

// countReply writes one number in each delta.
func countReply(between, to string, readable bool) reply {
	first := 1
	last, _ := strconv.Atoi(to)
	if m := from.FindStringSubmatch(between + " "); m != nil {
		first, _ = strconv.Atoi(m[1])
	}
	n := last - first + 1
	if n < 1 || n > maxAim {
		return sayText(fmt.Sprintf("I count upwards, and at most %d numbers.", maxAim))
	}
	rate := float64(fluent)
	if readable {
		rate = slowly
	}
	return reply{parts: []part{{n: n, rate: rate, delta: func(i int) string {
		if i == n-1 {
			return strconv.Itoa(last)
		}
		return strconv.Itoa(first+i) + " "
	}}}}
}
