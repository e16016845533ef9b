package openai_test

import (
	"testing"

	"github.com/parley-server/parley/internal/server/openai"
	"github.com/parley-server/parley/internal/testing/apitest"
	"github.com/parley-server/parley/internal/testing/slow"
)

// service is a process with this protocol.
type service struct{ *apitest.Chats }

func start(t *testing.T, opt apitest.ChatOptions) *service {
	t.Helper()
	slow.Test(t, "runs a server", "TestCompletionsContinueAChat")
	return &service{apitest.NewChats(t, opt, openai.New)}
}
