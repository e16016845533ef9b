package a2a

import (
	"strings"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/server/request"
	"github.com/parley-server/parley/internal/store/callback"
	"github.com/parley-server/parley/internal/turn"
)

// The limits of a receiver's fields.
const (
	maxConfigID    = 255  // characters
	maxToken       = 1024 // characters
	maxScheme      = 64   // characters
	maxCredentials = 8192 // characters
)

// pushConfig is a receiver of a task's updates in version 1.0. The credentials are sent only to the
// receiver.
type pushConfig struct {
	ID             string          `json:"id"`
	TaskID         uuid.UUID       `json:"taskId"`
	URL            string          `json:"url"`
	Authentication *authentication `json:"authentication,omitempty"`
}

type authentication struct {
	Scheme string `json:"scheme"`
}

// The same in version 0.3.
type (
	oldTaskConfig struct {
		TaskID uuid.UUID     `json:"taskId"`
		Config oldPushConfig `json:"pushNotificationConfig"`
	}
	oldPushConfig struct {
		ID             string             `json:"id"`
		URL            string             `json:"url"`
		Authentication *oldAuthentication `json:"authentication,omitempty"`
	}
	oldAuthentication struct {
		Schemes []string `json:"schemes"`
	}
)

// config encodes a receiver in a version.
func (v version) config(task uuid.UUID, n callback.Named) any {
	if v == v03 {
		c := oldTaskConfig{task, oldPushConfig{ID: n.Name, URL: n.URL}}
		if n.Scheme != "" {
			c.Config.Authentication = &oldAuthentication{[]string{n.Scheme}}
		}
		return c
	}
	c := pushConfig{ID: n.Name, TaskID: task, URL: n.URL}
	if n.Scheme != "" {
		c.Authentication = &authentication{n.Scheme}
	}
	return c
}

// parseReceiver parses the receiver of a task's updates.
func (c *call) parseReceiver(conf request.Fields) *turn.Callback {
	c.places["callback"] = conf.At
	to := &turn.Callback{URL: conf.RequiredString("url", request.MaxURL), Name: printable(conf, "id", maxConfigID), Protocol: c.version.protocol()}
	to.Auth.Token = printable(conf, "token", maxToken)
	auth := conf.Child("authentication")
	name, scheme := "scheme", ""
	if c.version == v10 {
		scheme = printable(auth, name, maxScheme)
	} else {
		name = "schemes"
		if all := auth.Strings(name, 10); len(all) > 0 {
			scheme = all[0]
		}
	}
	if scheme == "" && conf.Has("authentication") {
		auth.Missing(name)
	}
	if strings.ContainsFunc(scheme, func(r rune) bool { return r <= ' ' || r > '~' }) {
		auth.Add(fault.Violation{Param: auth.At, Rule: "format", Message: "The scheme of an authentication is one word, like Bearer."})
	}
	to.Auth.Scheme, to.Auth.Credentials = scheme, printable(auth, "credentials", maxCredentials)
	return to
}

// printable parses a text that is valid in a header.
func printable(f request.Fields, name string, most int) string {
	text := f.String(name, most)
	if text != "" && !request.Printable(text) {
		f.Add(fault.Violation{Param: f.Pointer(name), Rule: "format", Message: name + " must be printable ASCII."})
	}
	return text
}
