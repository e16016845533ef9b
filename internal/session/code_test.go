package session_test

import (
	"testing"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/session"
)

func TestCodesAreTheEndOfTheID(t *testing.T) {
	t.Parallel()
	for id, want := range map[string]string{
		"0197a0d2-0000-7000-8000-000000000000": "000000",
		"0197a0d2-0000-7000-8000-0000000000ff": "00007Z",
		"0197a0d2-0000-7000-8000-ffffffffffff": "ZZZZZZ",
		"0197a0d2-0000-7000-8000-0000c0000001": "000001",
	} {
		if got := session.CodeOf(uuid.MustParse(id)); got.String() != want {
			t.Errorf("%s: %s, want %s", id, got, want)
		}
	}
	for range 1000 {
		code := session.CodeOf(uuid.Must(uuid.NewV7()))
		if got, ok := session.ParseCode(code.String()); !ok || got != code {
			t.Fatalf("%s is read as %s", code, got)
		}
	}
	same, _ := session.ParseCode("01Q0K1")
	for text, ok := range map[string]bool{"01q0k1": true, "olqoki": true, "01Q-0K1": true, "01Q0K": false, "01Q0K11": false,
		"01U0K1": false, "01é0K": false, "": false} {
		if code, got := session.ParseCode(text); got != ok || ok && code != same {
			t.Errorf("%q: %s %t", text, code, got)
		}
	}
}
