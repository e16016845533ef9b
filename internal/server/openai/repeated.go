package openai

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/server"
	"github.com/parley-server/parley/internal/server/request"
	"github.com/parley-server/parley/internal/session"
	"github.com/parley-server/parley/internal/strictjson"
)

// written returns the text of an assistant message, in any form in which a client keeps it.
func written(m request.ChatMessage) string {
	var text, refusal string
	var parts []struct {
		Text    string `json:"text"`
		Refusal string `json:"refusal"`
	}
	if strictjson.Unmarshal(m.Content, &text) != nil {
		_ = strictjson.Unmarshal(m.Content, &parts) // content that is not text is ignored
	}
	_ = strictjson.Unmarshal(m.Refusal, &refusal)
	var all []string
	for _, p := range parts {
		all = append(all, p.Text, p.Refusal)
	}
	return strings.Join(append(all, text, refusal), " ")
}

var ids = regexp.MustCompile(`[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}`)

// repeated returns the question that ends an assistant message, with its number; ok is false if
// there is none. The id alone is not enough: the user must have seen the calls, so the message must
// hold the whole question as this package renders it.
func (s *api) repeated(ctx context.Context, r *server.Request, last string) (a session.Approval, number int, ok bool, err error) {
	found := ids.FindAllString(last, -1)
	if found == nil {
		return a, 0, false, nil
	}
	own := r.Caller.Workspace.ID
	a, err = s.Sessions.Approval(ctx, own, uuid.MustParse(found[len(found)-1]))
	if err != nil {
		if f := fault.From(err); f != nil && f.Code == fault.ApprovalNotFound {
			err = nil
		}
		return a, 0, false, err
	}
	var ask event.InputRequired
	if a.Request == nil { // its session is erased
		return a, 0, false, nil
	}
	if err := json.Unmarshal(a.Request, &ask); err != nil {
		return a, 0, false, fmt.Errorf("read a question: %w", err)
	}
	if number, err = s.Sessions.Number(ctx, own, a.ApprovalID); err != nil {
		return a, 0, false, err
	}
	return a, number, ends(last, ask, number, s.Base(r.Request)), nil
}

// ends reports whether a text ends with a question, to whomever it was asked, and whatever became
// of the white space.
func ends(text string, ask event.InputRequired, number int, base string) bool {
	text = spaced(text)
	for _, unbound := range []string{"", unboundCompletion, unboundResponse} {
		for _, barred := range []bool{false, true} {
			if strings.HasSuffix(text, spaced(question(ask, number, About{Unbound: unbound, Barred: barred, Base: base}))) {
				return true
			}
		}
	}
	return false
}

func spaced(text string) string { return strings.Join(strings.Fields(text), " ") }
