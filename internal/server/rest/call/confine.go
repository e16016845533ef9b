package call

import (
	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/server"
	"github.com/parley-server/parley/internal/session"
	"github.com/parley-server/parley/internal/store/agent"
	"github.com/parley-server/parley/internal/turn"
)

// Session returns the session in the path, as SessionID does, if the caller may use it.
func (r *Request) Session(s *server.Server) (uuid.UUID, error) {
	id, err := r.SessionID()
	if err == nil {
		err = r.CheckSession(s, id)
	}
	return id, err
}

// CheckSession reports a session that the caller's browser token is not for as one that does not
// exist. Other callers may use every session of their workspace.
func (r *Request) CheckSession(s *server.Server, id uuid.UUID) error {
	only := r.Caller.Only
	if only == nil || only.User == "" && only.Session == id {
		return nil
	}
	if only.User == "" {
		return session.NotFound(id)
	}
	ctx, cancel := s.Brief(r.Context())
	defer cancel()
	own, err := s.Sessions.IsOfUser(ctx, r.Caller.Workspace.ID, id, only.User)
	if err == nil && !own {
		err = session.NotFound(id)
	}
	return err
}

// ConfineMessage applies the limit of a browser token to a message: its session or user, and its
// agent.
func (r *Request) ConfineMessage(s *server.Server, m *turn.Request) error {
	only := r.Caller.Only
	if only == nil {
		return nil
	}
	for _, field := range []struct {
		name  string
		given bool
	}{
		{"caller_id", m.CallerID != ""}, {"callback", m.Callback != nil}, {"secret_input", len(m.Secrets) > 0},
		{"agent", m.Agent != "" && m.Agent != only.Agent}, {"agent_version", m.AgentVersion != agent.Published},
		{"user", m.Labels.User != "" && m.Labels.User != only.User},
	} {
		if field.given {
			return restricted(field.name)
		}
	}
	m.Agent, m.Labels.User = only.Agent, only.User
	if m.Session == uuid.Nil {
		m.Session = only.Session
	}
	if m.Session == uuid.Nil {
		return nil
	}
	return r.CheckSession(s, m.Session)
}

// ConfineAnswer applies the limit of a browser token to a decision. Patterns are for administrators
// and trusted backends: they hold for every session.
func (r *Request) ConfineAnswer(a *turn.Answer) error {
	only := r.Caller.Only
	switch {
	case only == nil:
		return nil
	case a.Pattern != "":
		return restricted("allowlist_pattern")
	case a.Actor != "" && a.Actor != only.User:
		return restricted("actor")
	}
	a.Actor = only.User
	return nil
}

// ConfineList limits a list of sessions to those of the user of a browser token.
func (r *Request) ConfineList(q *session.SummaryQuery) error {
	only := r.Caller.Only
	switch {
	case only == nil:
		return nil
	case only.User == "":
		return oneSession(only.Session)
	case q.User != nil && *q.User != only.User:
		return restricted("user")
	}
	q.User = &only.User
	return nil
}

// CheckFork rejects a fork with a browser token for one session, which could not use it.
func (r *Request) CheckFork() error {
	if only := r.Caller.Only; only != nil && only.User == "" {
		return oneSession(only.Session)
	}
	return nil
}

func oneSession(id uuid.UUID) error {
	return fault.New(fault.TokenRestricted, "This browser token is for one session, which has the id %s.", id)
}

func restricted(field string) error {
	return &fault.Error{Code: fault.TokenRestricted, Param: field,
		Message: "A browser token cannot set " + field + ". Leave it out, or send the request with an API key from your backend."}
}
