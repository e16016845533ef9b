package anthropic_test

import (
	"net/http"
	"testing"

	"go.uber.org/goleak"

	"github.com/parley-server/parley/internal/model"
	"github.com/parley-server/parley/internal/model/anthropic"
	"github.com/parley-server/parley/internal/testing/modeltest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func speak(base string, client *http.Client) model.Model {
	return anthropic.New(anthropic.Config{Model: "claude-sonnet-4-5", APIKey: modeltest.Key + "\n", BaseURL: base, HTTPClient: client})
}

func TestPromisesOfAModel(t *testing.T) {
	t.Parallel()
	modeltest.AnthropicSuite(speak).Run(t)
}

func TestNameSaysTheProvider(t *testing.T) {
	t.Parallel()
	if got := anthropic.New(anthropic.Config{Model: "claude-haiku-4-5"}).Name(); got != "anthropic/claude-haiku-4-5" {
		t.Errorf("Name = %q", got)
	}
}

// Not parallel: it changes the environment.
func TestNothingIsReadFromTheEnvironment(t *testing.T) {
	for _, name := range []string{"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_PROFILE"} {
		t.Setenv(name, "from-the-environment")
	}
	t.Setenv("ANTHROPIC_BASE_URL", "http://127.0.0.1:1/")
	t.Setenv("ANTHROPIC_CUSTOM_HEADERS", "X-Custom: from-the-environment")
	script := modeltest.Say("hello")
	srv := modeltest.Anthropic(script)
	defer srv.Close()
	m := anthropic.New(anthropic.Config{Model: "claude-sonnet-4-5", BaseURL: srv.URL, HTTPClient: srv.Client()})
	if _, err := modeltest.Read(m.Generate(t.Context(), model.Request{})); err != nil {
		t.Fatal(err)
	}
	for name, values := range script.Requests()[0].Header {
		if values[0] == "from-the-environment" || name == "Authorization" || name == "X-Api-Key" {
			t.Errorf("header %s: %v", name, values)
		}
	}
}
