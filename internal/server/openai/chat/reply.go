package chat

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/server"
	"github.com/parley-server/parley/internal/server/openai/words"
	"github.com/parley-server/parley/internal/store/ratelimit"
	"github.com/parley-server/parley/internal/turn"
)

// findReply finds the rows to read: the rest of the turn that the message refers to, or the turn
// that it starts.
func (s Service) findReply(w http.ResponseWriter, r *server.Request, q requestBody, raw []byte) (Reply, error) {
	if q.results != nil {
		return s.postResults(w, r, q, raw)
	}
	said := words.Parse(typedText(q.text))
	if q.more { // the user's message is already in the session
		said = words.Continue()
	}
	if !said.IsNone() {
		rd, ok, err := words.Speaker{Server: s.Server}.Speak(r, words.Chat{Session: q.Session, CallerID: q.CallerID, Last: q.last}, said)
		if ok || err != nil {
			return rd, err
		}
	}
	if q.more && q.namesChat() {
		return Reply{}, fault.Invalid(fault.Violation{Param: "/messages", Rule: "required",
			Message: "The last message is the assistant's own, and nothing is in progress in this chat. Send a message of the user."})
	}
	if n, _ := retryCount(r); n > 0 && q.namesChat() { // in an unnamed chat an equal text may be another user's
		rd, ok, err := s.RetriedTurn(w, r, q.Request, raw)
		if ok || err != nil {
			return Reply{Reading: rd}, err
		}
	}
	if err := s.CountRequest(r.Context(), w, r.Caller, ratelimit.Messages); err != nil {
		return Reply{}, err
	}
	if err := s.storeFiles(r, &q); err != nil {
		return Reply{}, err
	}
	rd, err := s.StartChatTurn(w, r, q.Request, raw)
	if err != nil && s.isAbandoned(r, q, err) {
		q.Multitask = turn.Interrupt
		rd, err = s.StartChatTurn(w, r, q.Request, raw)
	}
	return Reply{Reading: rd}, err
}

// Plainly puts all violations into the message of an error, because these clients show nothing
// else.
func Plainly(do Handler) Handler {
	return func(w http.ResponseWriter, r *server.Request) error {
		err := r.Names.TranslateError(do(w, r))
		r.Names = nil // the message already has the client's names
		f := fault.From(err)
		if f == nil || len(f.Detail.Violations) < 2 {
			return err
		}
		told := *f
		var all []string
		for _, v := range f.Detail.Violations {
			all = append(all, v.Message)
		}
		if n := len(all) - 5; n > 0 {
			all = append(all[:5], fmt.Sprintf("(and %d more)", n))
		}
		told.Message = strings.Join(all, " ")
		return &told
	}
}

// explainBusy adds the remedy for a turn in progress, for users who can only send messages.
func explainBusy(w http.ResponseWriter, err error) error {
	f := fault.From(err)
	if f == nil || f.Code != fault.TurnInProgress {
		return err
	}
	forbidRetry(w)
	told := *f
	told.Message = "This conversation is still busy with an earlier message, and this one was not taken. " +
		"Send `continue` to read on, `cancel` to end it, or, where it has asked, `allow` or `deny` with the code of its question."
	return &told
}
