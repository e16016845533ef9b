package app

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/model"
	"github.com/parley-server/parley/internal/model/builtin"
	"github.com/parley-server/parley/internal/server/admin"
	"github.com/parley-server/parley/internal/store/vault"
)

// testTokens limits the reply to a test. A reasoning model needs some before its first word.
const testTokens = 500

// testModel sends a short request to a model of a workspace, and reports a failure to the
// administrator.
func (m *models) testModel(ctx context.Context, workspace uuid.UUID, name string) (admin.ModelTest, error) {
	began := time.Now()
	err := m.ask(ctx, workspace, name)
	t := admin.ModelTest{Model: name, OK: err == nil, Milliseconds: time.Since(began).Milliseconds()}
	if err != nil {
		t.Error = new(describeModelError(err))
	}
	return t, nil
}

func (m *models) ask(ctx context.Context, workspace uuid.UUID, name string) error {
	opened, err := m.Model(ctx, workspace, name)
	if err != nil {
		return err
	}
	return askModel(ctx, opened)
}

// askModel sends a short request to a model.
func askModel(ctx context.Context, opened model.Model) error {
	request := model.Request{Messages: []model.Message{{Role: model.User, Text: "Answer with the word OK."}}, MaxTokens: testTokens}
	for _, err := range opened.Generate(ctx, request) {
		if err != nil {
			return err
		}
	}
	return nil
}

// describeModelError returns the failure of a model for an administrator.
func describeModelError(err error) string {
	if errors.Is(err, context.DeadlineExceeded) {
		return "It did not answer in time."
	}
	text := err.Error()
	if e, ok := errors.AsType[*model.Error](err); ok && e.Hint == "" && e.Err != nil {
		text = strings.TrimSuffix(text, ".") + ": " + e.Err.Error()
	}
	return strings.TrimSuffix(text, ".") + "."
}

// modelsFor returns the models of workspaces for a command.
func (s *Stores) modelsFor(secrets *vault.Store) *models {
	return newModels(s.config, func() (model.Model, error) {
		return builtin.New(), nil
	}, s.Workspaces, ownProviders{s.Modelset, secrets, s.guard})
}
