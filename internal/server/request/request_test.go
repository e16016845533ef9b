package request_test

import (
	"encoding/json"
	"testing"

	"go.uber.org/goleak"

	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/server/request"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestWrongTypesAreToldInEnglish(t *testing.T) {
	t.Parallel()
	var c request.Checks
	wrong := json.RawMessage(`null`)
	c.Array("/a", wrong, 1)
	c.Object("/b", wrong)
	c.Integer("/c", wrong, 0, 1)
	c.Boolean("/d", wrong)
	c.Text("/e", wrong)
	for i, v := range fault.From(c.Err()).Detail.Violations {
		want := []string{"a must be an array.", "b must be an object.", "c must be an integer.", "d must be a boolean.", "e must be a string."}[i]
		if v.Message != want {
			t.Errorf("%q, want %q", v.Message, want)
		}
	}
}
