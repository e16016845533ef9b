package request_test

import (
	"testing"

	"github.com/parley-server/parley/internal/server/request"
	"github.com/parley-server/parley/internal/session"
)

func TestMessagesThatAreWords(t *testing.T) {
	t.Parallel()
	code, _ := session.ParseCode("7QK2MX")
	coded := func(kind, reason string) request.Word {
		return request.Word{Kind: kind, Code: code, Coded: true, Reason: reason}
	}
	for text, want := range map[string]request.Word{
		"allow 7QK2MX":                       coded(request.Allow, ""),
		"  ALLOW\t7qk2mx\n":                  coded(request.Allow, ""),
		"**allow** (7QK-2MX).":               coded(request.Allow, ""),
		"`allow 7QK2MX`":                     coded(request.Allow, ""),
		"allow 7QK2MX .":                     coded(request.Allow, ""),
		"deny 7QK2MX":                        coded(request.Deny, ""),
		"Deny, 7QK2MX: not on a Monday.":     coded(request.Deny, "not on a Monday."),
		"deny 7QK2MX\nnot\nnow":              coded(request.Deny, "not\nnow"),
		"continue":                           {Kind: request.Continue},
		"Continue!":                          {Kind: request.Continue},
		"continue 7QK2MX":                    coded(request.Continue, ""),
		"cancel.":                            {Kind: request.Cancel},
		"allow":                              {Kind: request.Allow},
		"'Deny'":                             {Kind: request.Deny},
		"allow 2":                            {Kind: request.Allow},
		"allow it!":                          {Kind: request.Allow},
		"allow 7QK2MX but not more":          {Kind: request.Allow},
		"":                                   {},
		"allow7QK2MX":                        {},
		"please allow 7QK2MX":                {},
		"> allow 7QK2MX":                     {},
		"Reply `allow 7QK2MX` or not.":       {},
		"allow me to explain":                {},
		"deny that you are a machine":        {},
		"continue with it":                   {},
		"continue 7QK2MX and then translate": {},
		"cancel my order":                    {},
		"allowed 7QK2MX":                     {},
	} {
		if got := request.ParseWord(text); got != want {
			t.Errorf("%q: %+v, want %+v", text, got, want)
		}
	}
}
