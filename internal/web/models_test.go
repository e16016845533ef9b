package web

import (
	"testing"

	"github.com/parley-server/parley/internal/store/account"
	"github.com/parley-server/parley/internal/store/apikey"
	"github.com/parley-server/parley/internal/store/workspace"
)

// TestModelsPage adds, changes and removes a provider, sets fallback models, and looks at prices. A
// credential that does not exist is an error of its field, and a change of fallback models that
// another administrator has overtaken is rejected.
func TestModelsPage(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := w.signIn(t, account.NewUser{Email: "olga@halden.example", Name: "Olga Berg"}, apikey.Owner)
	at := w.URL + "/w/demo/settings/models"

	p.Go(at)
	p.See("h2", "No providers yet")
	p.See("td", "openai/gpt-5-mini")
	p.Fill("#f-name", "vllm")
	p.Fill("#f-base_url", "https://vllm.example.com/v1")
	p.Fill("#f-credential", "VLLM_KEY")
	p.Press("button.primary", "Save provider")
	p.See(".err", "The workspace has no secret VLLM_KEY")
	p.Fill("#f-credential", "")
	p.Press("button.primary", "Save provider")
	p.See(".note", "Provider vllm saved")
	p.See("td", "https://vllm.example.com/v1")
	p.Press("a.btn", "Change")
	p.Fill("#f-timeout_seconds", "300")
	p.Press("button.primary", "Save provider")
	p.See("td", "timeout 300 s")

	p.Fill("#f-fallback_models", "absent\nvllm/llama")
	p.Press("button.primary", "Save fallback models")
	p.See(".note.bad", "is not the name of a model")
	p.Go(at)
	p.Fill("#f-fallback_models", "vllm/llama")
	p.Press("button.primary", "Save fallback models")
	p.See(".note", "Fallback models saved")
	p.See("td", "Unknown")
	p.Review("models")
	if _, err := workspace.New(w.Pool).Update(t.Context(), w.Workspace.ID, workspace.Change{Name: new("Another")}); err != nil {
		t.Fatal(err)
	}
	p.Press("button.primary", "Save fallback models")
	p.See(".note.bad", "has changed since you read it")
	p.Go(at + "?delete=vllm")
	p.Press("button.fill", "Remove provider")
	p.See("h2", "No providers yet")
}
