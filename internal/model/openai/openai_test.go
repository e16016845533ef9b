package openai_test

import (
	"net/http"
	"testing"

	"go.uber.org/goleak"

	"github.com/parley-server/parley/internal/model"
	"github.com/parley-server/parley/internal/model/openai"
	"github.com/parley-server/parley/internal/testing/modeltest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func speak(base string, client *http.Client) model.Model {
	return openai.New(openai.Config{Model: "gpt-5-mini", APIKey: modeltest.Key, BaseURL: base + "/v1", HTTPClient: client})
}

func TestPromisesOfAModel(t *testing.T) {
	t.Parallel()
	modeltest.OpenAISuite(speak).Run(t)
}

func TestNameSaysTheProvider(t *testing.T) {
	t.Parallel()
	if got := openai.New(openai.Config{Model: "gpt-5-mini"}).Name(); got != "openai/gpt-5-mini" {
		t.Errorf("Name = %q", got)
	}
	if got := openai.New(openai.Config{Model: "llama3.2", Provider: "ollama"}).Name(); got != "ollama/llama3.2" {
		t.Errorf("Name = %q", got)
	}
}

// Not parallel: it changes the environment.
func TestNothingIsReadFromTheEnvironment(t *testing.T) {
	for _, name := range []string{"OPENAI_API_KEY", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID", "OPENAI_ADMIN_KEY"} {
		t.Setenv(name, "from-the-environment")
	}
	t.Setenv("OPENAI_BASE_URL", "http://127.0.0.1:1/v1")
	t.Setenv("OPENAI_CUSTOM_HEADERS", "X-Custom: from-the-environment")
	script := modeltest.Say("hello")
	srv := modeltest.OpenAI(script)
	defer srv.Close()
	m := openai.New(openai.Config{Model: "llama3.2", BaseURL: srv.URL + "/v1", HTTPClient: srv.Client()})
	if _, err := modeltest.Read(m.Generate(t.Context(), model.Request{})); err != nil {
		t.Fatal(err)
	}
	for name, values := range script.Requests()[0].Header {
		if values[0] == "from-the-environment" || name == "Authorization" {
			t.Errorf("header %s: %v", name, values)
		}
	}
}
