package turn

import (
	"github.com/parley-server/parley/internal/agent"
	"github.com/parley-server/parley/internal/session"
)

// reasoningPurpose is the purpose that the reasoning of a turn's replies is sealed for.
const reasoningPurpose = "turn reasoning"

// sealReasoning lets an agent keep the model's reasoning in the log. Only the running turn reads it,
// so a rotation of keys leaves it as it is: a turn that outlives a retired key continues without it.
func (s *Service) sealReasoning(ag *agent.Agent, t session.Turn) {
	if s.cfg.Vault == nil {
		return
	}
	keys := s.cfg.Vault.Keyring()
	ag.Seal = func(plain []byte) ([]byte, error) { return keys.Seal(plain, reasoningPurpose, t.ID.String()) }
	ag.Open = func(sealed []byte) ([]byte, error) { return keys.Open(sealed, reasoningPurpose, t.ID.String()) }
}
