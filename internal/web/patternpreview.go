package web

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/server"
	"github.com/parley-server/parley/internal/session"
	"github.com/parley-server/parley/internal/store/permission"
)

const (
	previewDays  = 30
	previewCalls = 3  // calls that a preview shows
	previewWidth = 80 // characters of a call
)

// patternPreview is the response to a pattern that is being written.
type patternPreview struct {
	OK   bool   `json:"ok"`
	Text string `json:"text"`
}

// previewPattern describes the calls that a pattern would allow: those of this request, and those of
// the last 30 days.
func (a *App) previewPattern(w http.ResponseWriter, p *page) error {
	id, err := p.approvalID()
	if err != nil {
		return err
	}
	asked, err := a.srv.Sessions.Approval(p.Context(), p.Workspace.ID, id)
	if err != nil {
		return err
	}
	pattern, err := permission.Parse(p.PostForm.Get("pattern"))
	if err != nil {
		return server.WriteJSON(w, http.StatusOK, patternPreview{Text: reasonOf(err)})
	}
	own := matching(pattern, asked)
	if len(own) == 0 {
		return server.WriteJSON(w, http.StatusOK, patternPreview{Text: "It matches none of the operations above, so it cannot be added here."})
	}
	recent, err := a.coverage(p.Context(), p, pattern)
	if err != nil {
		return err
	}
	return server.WriteJSON(w, http.StatusOK, patternPreview{OK: true, Text: "Covers " + strings.Join(own[:min(previewCalls, len(own))],
		", ") + ". " + recent})
}

// coverage describes the calls of the last 30 days that a pattern covers.
func (a *App) coverage(ctx context.Context, p *page, pattern permission.Pattern) (string, error) {
	calls, all, err := a.srv.Sessions.RecentCalls(ctx, p.Workspace.ID, pattern.Tool(), time.Now().AddDate(0, 0, -previewDays))
	if err != nil {
		return "", err
	}
	n, shown := 0, []string(nil)
	for _, c := range calls {
		if !pattern.Matches(pattern.Tool(), c.Input) {
			continue
		}
		n++
		if line := callLine(pattern.Tool(), c.Input); len(shown) <= previewCalls && !slices.Contains(shown, line) {
			shown = append(shown, line)
		}
	}
	of := fmt.Sprintf("%s of %s in the last %d days", plural(len(calls), "call", "calls"), pattern.Tool(), previewDays)
	if !all {
		of = "newest " + of
	}
	switch {
	case len(calls) == 0:
		return fmt.Sprintf("Nothing called %s in the last %d days.", pattern.Tool(), previewDays), nil
	case n == 0:
		return "It covers none of the " + of + ".", nil
	}
	more := ""
	if len(shown) > previewCalls {
		shown, more = shown[:previewCalls], " …"
	}
	return fmt.Sprintf("It covers %d of the %s: %s%s", n, of, strings.Join(shown, ", "), more), nil
}

// callLine returns a call in one line, without characters that cannot be seen.
func callLine(tool string, input json.RawMessage) string {
	line := []rune(flat(inline(tool + " " + string(input))))
	if len(line) > previewWidth {
		line = append(line[:previewWidth-1], '…')
	}
	return string(line)
}

// matching returns the summaries of the operations of a request that a pattern covers.
func matching(pattern permission.Pattern, a session.Approval) (found []string) {
	var req event.InputRequired
	if json.Unmarshal(a.Request, &req) != nil {
		return nil
	}
	for _, op := range req.Operations {
		if pattern.Matches(op.Tool, op.Input) {
			found = append(found, flat(inline(op.Tool+" "+op.Summary)))
		}
	}
	return found
}

// reasonOf returns the sentences of a fault.
func reasonOf(err error) string {
	f := fault.From(err)
	if f == nil {
		return "This pattern cannot be read."
	}
	var all []string
	for _, v := range f.Detail.Violations {
		all = append(all, v.Message)
	}
	if len(all) == 0 {
		return f.Message
	}
	return strings.Join(all, " ")
}
