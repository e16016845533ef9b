package web

import (
	"cmp"
	"net/http"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/server"
	"github.com/parley-server/parley/internal/server/request"
)

// meter describes the request of the newest reply of a session's newest turn, in tokens.
type meter struct {
	Window int          `json:"window"` // of the model
	Tokens int64        `json:"tokens"`
	Cached int64        `json:"cached"` // read from the provider's cache
	Masked *event.Place `json:"masked"` // up to which results were left out; nil: none were
	// Before and After are the sizes of the request without and with the newest summary of the turn; 0:
	// there is none.
	Before int64 `json:"before"`
	After  int64 `json:"after"`
}

// chatMeter returns the meter of a session, null if its newest turn has no reply.
func (a *App) chatMeter(w http.ResponseWriter, p *page) error {
	id, ok := request.ID(p.PathValue("session"))
	if !ok {
		return fault.New(fault.SessionNotFound, "The session does not exist in this workspace.")
	}
	t, ok, err := a.srv.Sessions.NthTurn(p.Context(), p.Workspace.ID, id, 0)
	if err != nil {
		return err
	}
	if !ok {
		return server.WriteJSON(w, http.StatusOK, nil)
	}
	log, err := a.srv.Sessions.ReadTurnLog(p.Context(), t)
	if err != nil {
		return err
	}
	var m *meter
	var summary event.Compacted
	for _, ev := range log.Events {
		if ev.Kind != event.KindReply && ev.Kind != event.KindCompacted {
			continue
		}
		body, err := ev.Body()
		if err != nil {
			return err
		}
		switch b := body.(type) {
		case event.Compacted:
			summary = b
		case event.Reply:
			m = &meter{Window: a.Catalog.Window(b.Usage.Model), Tokens: b.Usage.InputTokens, Cached: b.Usage.CachedInputTokens,
				Before: summary.TokensBefore, After: summary.TokensAfter}
			if b.Sent != nil {
				m.Window, m.Masked = cmp.Or(b.Sent.Window, m.Window), b.Sent.Masked
			}
		}
	}
	return server.WriteJSON(w, http.StatusOK, m)
}
