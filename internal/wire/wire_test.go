package wire_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/parley-server/parley/internal/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestUnsoundStrings(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]bool{
		`""`: false, `"a"`: false, `"\\u0000"`: false, `"\\\u0000"`: true, `"\u0000"`: true, `"\u00e9"`: false, `"\n\t\""`: false,
		`"\ud83d\ude00"`: false, `"\uD83D\uDE00"`: false, `"\ud83d"`: true, `"\ud83dx"`: true, `"\ud83d\n"`: true, `"\ud83d\u0041"`: true,
		`"\ude00"`: true, `"\ud83d\ud83d\ude00"`: true, `"\ud83d\ude00\ud83d"`: true, `"\ufffd"`: false, `"\ud83d\\ude00"`: true,
	} {
		if got := wire.Unsound([]byte(raw)); got != want {
			t.Errorf("%s: %v", raw, got)
		}
	}
}
