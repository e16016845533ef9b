package aisdk_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/parley-server/parley/internal/server/aisdk"
	"github.com/parley-server/parley/internal/testing/apitest"
	"github.com/parley-server/parley/internal/testing/slow"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// service is a process with this protocol.
type service struct{ *apitest.Chats }

func start(t *testing.T, opt apitest.ChatOptions) *service {
	t.Helper()
	slow.Test(t, "runs a server", "TestChat", "TestChatIsResumed")
	return &service{apitest.NewChats(t, opt, aisdk.New)}
}
