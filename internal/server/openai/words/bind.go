package words

import (
	"context"
	"regexp"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/server"
	"github.com/parley-server/parley/internal/session"
)

// binding is the session and the approval that a decision word applies to.
type binding struct {
	session uuid.UUID         // uuid.Nil: the word is an ordinary message
	coded   *session.Approval // the approval with the word's code; nil: none in the chat
	shown   *session.Approval // the approval that the conversation shows; nil: none of this chat
}

// bindWord finds the session that a decision word applies to, by the name of the chat. Without a
// name it is the session of the code, or of the approval that the conversation shows.
func (s Speaker) bindWord(r *server.Request, c Chat, said Word) (b binding, err error) {
	ctx, cancel := s.Brief(r.Context())
	defer cancel()
	if b.session = c.Session; b.session == uuid.Nil && c.CallerID != "" {
		var ok bool
		if b.session, ok, err = s.CallerSession(ctx, r.Caller, c.CallerID); err != nil || !ok {
			return binding{}, err
		}
	}
	if said.Coded {
		if b.coded, err = s.approvalByCode(ctx, r.Caller, b.session, said.Code); err != nil {
			return b, err
		}
	}
	if b.shown, err = s.approvalShown(ctx, r.Caller, b.session, c.Last); err != nil {
		return b, err
	}
	for _, a := range []*session.Approval{b.coded, b.shown} {
		if a != nil && b.session == uuid.Nil {
			b.session = a.SessionID
		}
	}
	return b, nil
}

// approvalByCode returns the approval of a session that has a code. A chat without a name has the
// approvals of its key in sessions without a name.
func (s Speaker) approvalByCode(ctx context.Context, c server.Caller, in uuid.UUID, code session.Code) (*session.Approval, error) {
	a, ok, err := s.Sessions.ApprovalByCode(ctx, c.Workspace.ID, in, code)
	if in == uuid.Nil {
		a, ok, err = s.Sessions.KeyApprovalByCode(ctx, c.Workspace.ID, c.Key, code)
	}
	if err != nil || !ok {
		return nil, err
	}
	return &a, nil
}

var ids = regexp.MustCompile(`[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}`)

// approvalShown returns the approval whose id comes last in the last message of the assistant, if
// it is of this session; without a name, if it is of this key in a session without a name. It only
// shows the state of the conversation: the text of an assistant decides nothing.
func (s Speaker) approvalShown(ctx context.Context, c server.Caller, in uuid.UUID, last string) (*session.Approval, error) {
	found := ids.FindAllString(last, -1)
	if found == nil {
		return nil, nil
	}
	id := uuid.MustParse(found[len(found)-1])
	key, named, ok, err := s.Sessions.ApprovalSender(ctx, c.Workspace.ID, id)
	if err != nil || !ok || in == uuid.Nil && (named || key != c.Key) {
		return nil, err
	}
	a, err := s.Sessions.Approval(ctx, c.Workspace.ID, id)
	if err != nil || in != uuid.Nil && a.SessionID != in {
		return nil, err
	}
	return &a, nil
}
