package permission_test

import (
	"encoding/json"
	"testing"

	"go.uber.org/goleak"

	"github.com/parley-server/parley/internal/store/permission"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// object returns a call's input of string members: name, value, name, value …
func object(pairs ...string) json.RawMessage {
	m := make(map[string]string)
	for i := 0; i < len(pairs); i += 2 {
		m[pairs[i]] = pairs[i+1]
	}
	raw, err := json.Marshal(m)
	if err != nil {
		panic(err)
	}
	return raw
}

func bash(command string) json.RawMessage { return object("command", command) }

func page(name string) json.RawMessage { return object("page", name, "content", "text") }

func file(path string) json.RawMessage { return object("path", path, "content", "text") }

func fetch(method, url string) json.RawMessage { return object("method", method, "url", url) }

func must(t testing.TB, pattern string) permission.Pattern {
	t.Helper()
	p, err := permission.Parse(pattern)
	if err != nil {
		t.Fatalf("Parse(%q): %v", pattern, err)
	}
	return p
}
