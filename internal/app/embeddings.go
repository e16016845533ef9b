package app

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/parley-server/parley/internal/model"
	"github.com/parley-server/parley/internal/model/openai"
	"github.com/parley-server/parley/internal/store/wiki"
)

// newEmbedder returns the model of PARLEY_EMBEDDINGS, which must be set.
func (c Config) newEmbedder(client *http.Client) (model.Embedder, error) {
	name, err := parseModel(c.Embeddings)
	if err != nil {
		return nil, err
	}
	switch {
	case name.provider == "openai" && c.OpenAIKey == "" && c.OpenAIBaseURL == "":
		return nil, fmt.Errorf("the model %s needs OPENAI_API_KEY", name)
	case name.provider == "openai":
		return openai.NewEmbedder(openai.Config{Model: name.name, APIKey: c.OpenAIKey.Reveal(), BaseURL: c.OpenAIBaseURL,
			HTTPClient: client}), nil
	case name.provider == "ollama":
		base, err := ollamaURL(c.OllamaHost)
		if err != nil {
			return nil, err
		}
		return openai.NewEmbedder(openai.Config{Model: name.name, BaseURL: base, Provider: "ollama", HTTPClient: client, KeyName: ollamaKey,
			URLName: "OLLAMA_HOST"}), nil
	}
	return nil, fmt.Errorf("%s has no models of embeddings; use openai/NAME or ollama/NAME", name.provider)
}

// useEmbeddings lets the search use the model of PARLEY_EMBEDDINGS, if it is set.
func (s *service) useEmbeddings() error {
	if s.Config.Embeddings == "" {
		return nil
	}
	embedder, err := s.Config.newEmbedder(s.models.client)
	if err != nil {
		return &ConfigError{[]string{"PARLEY_EMBEDDINGS: " + sentenceOf(err)}}
	}
	s.wiki.UseVectors(embedder, s.Log, s.metrics)
	return nil
}

// checkEmbeddings checks the model of embeddings and the database's extension for vectors.
func checkEmbeddings(ctx context.Context, d *doctor) (Finding, error) {
	cfg := d.stores.config
	if cfg.Embeddings == "" {
		return okFinding("None: the knowledge is searched by words (PARLEY_EMBEDDINGS is not set)."), nil
	}
	embedder, err := cfg.newEmbedder(newModels(cfg, nil, nil, ownProviders{}).client)
	if err != nil {
		return Finding{Grade: GradeFail, Result: sentenceOf(err), Remedy: "Correct PARLEY_EMBEDDINGS or the settings of its provider."}, nil
	}
	lacks, err := wiki.New(d.stores.pool).VectorsLack(ctx)
	switch {
	case err != nil:
		return Finding{}, err
	case lacks == "absent":
		return Finding{Grade: GradeWarn, Result: "The knowledge is searched by words: PostgreSQL has no pgvector 0.8 or later.",
			Remedy: "Install pgvector in the server of the database."}, nil
	}
	list, _, err := embedder.Embed(ctx, []string{"Do you answer?"})
	if err != nil {
		why := err.Error()
		if known, ok := errors.AsType[*model.Error](err); ok {
			why = describeModelError(known)
		}
		return Finding{Grade: GradeFail, Result: embedder.Name() + ": " + why,
			Remedy: "Check the key and the address of the provider, and that this machine reaches it. Until then the knowledge is " +
				"searched by words."}, nil
	}
	result := fmt.Sprintf("%s answers with vectors of %d dimensions.", embedder.Name(), len(list[0]))
	if lacks != "" {
		return Finding{Grade: GradeWarn, Result: result + " The database cannot store them yet.",
			Remedy: "The server tries this at its start. If its role may not, run as a superuser in the database: " + lacks + ";"}, nil
	}
	return okFinding("%s", result), nil
}
