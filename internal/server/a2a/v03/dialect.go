package v03

import (
	"github.com/parley-server/parley/internal/server/a2a/message"
	"github.com/parley-server/parley/internal/store/callback"
)

// Dialect is what the messages of this version have of their own.
var Dialect = message.Dialect{
	Name: "0.3", Role: "user", Kinds: []string{"text", "data", "file"}, Typed: true, Push: "pushNotificationConfig", Reports: callback.A2A03,
	Blocking: true, Schemes: true,
	Foreign:      map[string]string{"returnImmediately": "blocking", "taskPushNotificationConfig": "pushNotificationConfig"},
	ForeignParts: map[string]string{"url": "file", "raw": "file"},
}
