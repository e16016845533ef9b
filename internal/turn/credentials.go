package turn

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/session"
	"github.com/parley-server/parley/internal/store/vault"
)

// credentialNames returns the names of the credentials that a turn may use: those named in its
// message, and those a user has provided since.
func credentialNames(t session.Turn, log []event.Event) []string {
	names := slices.Clone(t.Secrets)
	asked := make(map[string]string) // by the id of the question
	for _, ev := range log {
		if ev.Kind != event.KindInputRequired && ev.Kind != event.KindDecision {
			continue
		}
		body, err := ev.Body()
		if err != nil {
			continue // the agent detects it, and ends the turn
		}
		switch b := body.(type) {
		case event.InputRequired:
			asked[b.ApprovalID.String()] = b.KeyName
		case event.Decision:
			if name := asked[b.ApprovalID.String()]; b.Outcome == event.Provided && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names
}

// buildInstructions returns the workspace's instructions, and how to use the credentials of the
// run.
func (s *Service) buildInstructions(ctx context.Context, workspace uuid.UUID, own string, names []string) (string, error) {
	if len(names) == 0 {
		return own, nil
	}
	list, err := s.cfg.Vault.List(ctx, workspace)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	b.WriteString("Tools of this run may use these credentials:\n")
	for _, name := range names {
		i := slices.IndexFunc(list, func(c vault.Credential) bool { return c.Name == name })
		switch {
		case i < 0:
			continue
		case !list[i].HasValue:
			fmt.Fprintf(&b, "- %s, which has no value yet: ask for it with request_secret\n", name)
		default:
			fmt.Fprintf(&b, "- %s, for requests to %s\n", name, strings.Join(list[i].Hosts, ", "))
		}
	}
	b.WriteString("In http_request write ${NAME} where the value belongs, in bash use the variable $NAME. Both are placeholders: " +
		"the value is put in on the way to its hosts, and it is not visible anywhere else.")
	return strings.TrimLeft(own+"\n\n"+b.String(), "\n"), nil
}
