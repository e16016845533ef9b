package web

import (
	"fmt"
	"net/http"
	"strconv"

	"github.com/parley-server/parley/internal/store/agent"
)

// tryView is the page that sends a message to two versions of an agent at once. Its script runs the
// turns through the API.
type tryView struct {
	Agent    agent.Agent
	Versions []option // values of agent_version
	Sides    []trySide
}

// trySide is one of the two conversations.
type trySide struct{ ID, Version string }

func (a *App) tryPage(w http.ResponseWriter, p *page) error {
	q := p.URL.Query()
	ag, err := a.srv.Agents.Find(p.Context(), p.Workspace.ID, q.Get("agent"))
	if err != nil {
		return err
	}
	published, err := a.srv.Agents.Version(p.Context(), ag, agent.Published)
	if err != nil {
		return err
	}
	list, err := a.srv.Agents.Versions(p.Context(), ag, 0, versionsOnPage)
	if err != nil {
		return err
	}
	view := tryView{Agent: ag, Versions: []option{{"", fmt.Sprintf("v%d, published", published.Number)}}}
	other := ""
	if ag.HasDraft {
		other = "draft"
		view.Versions = append(view.Versions, option{"draft", "Draft"})
	}
	chosen, _ := agent.ParseWhich(q.Get("version"))
	for _, v := range list {
		if v.Number == published.Number {
			continue
		}
		number := strconv.Itoa(v.Number)
		view.Versions = append(view.Versions, option{number, "v" + number})
		if v.Number == int(chosen) || other == "" {
			other = number
		}
	}
	view.Sides = []trySide{{"left", ""}, {"right", other}}
	return a.render(w, p, "agent-try", view)
}
