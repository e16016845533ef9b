package placeholder_test

import (
	"encoding/base64"
	"testing"

	"go.uber.org/goleak"

	"github.com/parley-server/parley/internal/placeholder"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestWhatTheInjectorReplacesIsFound(t *testing.T) {
	t.Parallel()
	const ph = "ph_abcdefghijklmnopqrstuvwx"
	encoded := base64.StdEncoding.EncodeToString([]byte("user:" + ph))
	for value, want := range map[string]bool{
		"Bearer " + ph: true, ph: true, "Bearer ${API_TOKEN}": true,
		"Basic " + encoded: true, "basic " + encoded: true, "BASIC " + encoded: true, "Basic " + encoded[:8] + "\n" + encoded[8:]: true,
		"Basic " + ph: true, "Bearer " + encoded: false, "Basic  " + encoded: false, "text/html": false, "": false, "Basic ": false,
		"ph_short": false,
	} {
		if got := placeholder.NamedInHeader(value); got != want {
			t.Errorf("NamedInHeader(%q) = %v", value, got)
		}
		text, write := placeholder.Header(value)
		if again, _ := placeholder.Header(write(text)); again != text {
			t.Errorf("%q is written as %q", value, write(text))
		}
	}
}
