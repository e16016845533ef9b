package message

import (
	"strings"

	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/server/request"
	"github.com/parley-server/parley/internal/turn"
)

// The limits of a receiver's fields.
const (
	MaxReceiverID  = 255  // characters
	maxToken       = 1024 // characters
	maxScheme      = 64   // characters
	maxCredentials = 8192 // characters
)

// Receiver parses the receiver of a task's updates.
func (p *Parser) Receiver(conf request.Fields) *turn.Callback {
	p.Places["callback"] = conf.At
	to := &turn.Callback{URL: conf.RequiredString("url", request.MaxURL), Name: headerText(conf, "id", MaxReceiverID), Protocol: p.Reports}
	to.Auth.Token = headerText(conf, "token", maxToken)
	auth := conf.Child("authentication")
	name, scheme := "scheme", ""
	if p.Schemes {
		name = "schemes"
		if all := auth.Strings(name, 10); len(all) > 0 {
			scheme = all[0]
		}
	} else {
		scheme = headerText(auth, name, maxScheme)
	}
	if scheme == "" && conf.Has("authentication") {
		auth.Missing(name)
	}
	if strings.ContainsFunc(scheme, func(r rune) bool { return r <= ' ' || r > '~' }) {
		auth.Add(fault.Violation{Param: auth.At, Rule: "format", Message: "The scheme of an authentication is one word, like Bearer."})
	}
	to.Auth.Scheme, to.Auth.Credentials = scheme, headerText(auth, "credentials", maxCredentials)
	return to
}

// headerText parses a text that is valid in a header.
func headerText(f request.Fields, name string, most int) string {
	text := f.String(name, most)
	if text != "" && !request.Printable(text) {
		f.Add(fault.Violation{Param: f.Pointer(name), Rule: "format", Message: name + " must be printable ASCII."})
	}
	return text
}
