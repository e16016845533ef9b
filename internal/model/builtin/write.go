package builtin

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"github.com/parley-server/parley/internal/event"
)

var (
	politely    = `(?is)^\W*(?:please |can you |could you |would you )*`
	pageWritten = regexp.MustCompile(politely + `(?:write|save|put|store|create|make|update|change|replace)\b[^:\n]{0,80}?\bwiki ` +
		`page\s+(?:called |named )?["'“‘\x60]?([^"'”’\x60:\n]+?)["'”’\x60]?\s*:\s*(.+)$`)
	savedToPage = regexp.MustCompile(politely + `(?:write|save|put|store)\s+(.+?)\s+(?:in|on|as|to|into|onto)\s+(?:the |our |a )?(?:new ` +
		`)?wiki page\s+(?:called |named )?["'“‘\x60]?([^"'”’\x60:?!\n]+?)["'”’\x60]?\W*$`)
	approval    = regexp.MustCompile(`(?i)^\W*(?:please )?(?:ask|request|show)\b.{0,30}\b(?:approval|permission|approve)\b.{0,30}$`)
	quoted      = regexp.MustCompile(`(?s)^["'“‘\x60](.*)["'”’\x60]$`)
	pageVersion = regexp.MustCompile(`^\[version (\d{1,9})\]`)
)

// writtenPage finds the page and the text in "Save Trains first. to the wiki page
// travel" and in "Write the wiki page travel: Trains first."
func writtenPage(question string) (page, content string, ok bool) {
	if m := pageWritten.FindStringSubmatch(question); m != nil {
		page, content = m[1], m[2]
	} else if m := savedToPage.FindStringSubmatch(question); m != nil {
		page, content = m[2], quoted.ReplaceAllString(m[1], "$1")
	}
	page, ok = pageName(page)
	return page, strings.TrimSpace(content), ok && content != ""
}

// writePage reads a wiki page, for its version, and then writes it.
func (c conversation) writePage(page, content string) reply {
	switch {
	case !c.offered["wiki_write"]:
		return sayText("I cannot write to the wiki: this workspace gives me no wiki_write tool.")
	case c.step == 0 && c.offered["wiki_read"]:
		return reply{calls: []event.ToolCall{askFor("wiki_read", map[string]any{"page": page, "version": true})}}
	}
	if r, ok := c.findResult("wiki_write"); ok {
		return reportOutcome(r, "Done. ")
	}
	plan, input := "I am going to make the wiki page "+page+".", map[string]any{"page": page, "content": content}
	if r, ok := c.findResult("wiki_read"); ok && !r.failed {
		if m := pageVersion.FindStringSubmatch(r.output); m != nil {
			plan = fmt.Sprintf("I am going to replace version %s of the wiki page %s.", m[1], page)
			input["expected_version"] = json.Number(m[1])
		}
	}
	return plannedCall(plan, askFor("wiki_write", input))
}

// askApproval triggers an approval: it writes a page, which needs one unless the caller may write.
func (c conversation) askApproval() reply {
	if !c.offered["wiki_write"] {
		return sayText("I have no tool here that asks for an approval.")
	}
	if r, ok := c.findResult("wiki_write"); ok {
		return reportOutcome(r, "The call went through. ")
	}
	return plannedCall(
		"I am going to write the wiki page approval-demo. An approver has to allow that first, unless your key has the scope wiki:write; "+
			"with `parley permissions update wiki_write ask` it asks always.",
		askFor("wiki_write", map[string]any{"page": "approval-demo",
			"content": "# Approval demo\n\nThe built-in guide wrote this page to show an approval.\n"}))
}

// plannedCall returns a call after a text with its purpose, which approvers read.
func plannedCall(plan string, call event.ToolCall) reply {
	r := sayText(plan + "\n\n")
	r.calls = []event.ToolCall{call}
	return r
}

// reportOutcome reports the outcome of a call.
func reportOutcome(r result, done string) reply {
	if r.failed {
		return sayText("Nothing was written. " + firstLine(r.output))
	}
	return sayText(done + firstLine(r.output))
}
