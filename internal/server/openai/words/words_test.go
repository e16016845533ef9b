package words

import (
	"testing"

	"github.com/parley-server/parley/internal/session"
)

func TestMessagesThatAreWords(t *testing.T) {
	t.Parallel()
	code, _ := session.ParseCode("7QK2MX")
	coded := func(kind, reason string) Word { return Word{kind, code, true, reason} }
	for text, want := range map[string]Word{
		"allow 7QK2MX":                       coded(allow, ""),
		"  ALLOW\t7qk2mx\n":                  coded(allow, ""),
		"**allow** (7QK-2MX).":               coded(allow, ""),
		"`allow 7QK2MX`":                     coded(allow, ""),
		"allow 7QK2MX .":                     coded(allow, ""),
		"deny 7QK2MX":                        coded(deny, ""),
		"Deny, 7QK2MX: not on a Monday.":     coded(deny, "not on a Monday."),
		"deny 7QK2MX\nnot\nnow":              coded(deny, "not\nnow"),
		"continue":                           {kind: goOn},
		"Continue!":                          {kind: goOn},
		"continue 7QK2MX":                    coded(goOn, ""),
		"cancel.":                            {kind: stop},
		"allow":                              {kind: allow},
		"'Deny'":                             {kind: deny},
		"allow 2":                            {kind: allow},
		"allow it!":                          {kind: allow},
		"allow 7QK2MX but not more":          {kind: allow},
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
		if got := Parse(text); got != want {
			t.Errorf("%q: %+v, want %+v", text, got, want)
		}
	}
}
