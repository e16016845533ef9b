package e2e_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/parley-server/parley/internal/testing/egresstest"
	"github.com/parley-server/parley/internal/testing/slow"
	"github.com/parley-server/parley/internal/testing/wait"
)

// hostile returns schemas that make a naive server fetch, recurse, multiply or trust.
func hostile(t *testing.T, inside string) []string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "schema.json")
	if err := os.WriteFile(file, []byte(`{"type":"string"}`), 0o644); err != nil {
		t.Fatal(err)
	}
	list := []string{
		`{"$ref":"#"}`, `{"allOf":[{"$ref":"#"}]}`, `{"not":{"$ref":"#"}}`,
		`{"$defs":{"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"}},"$ref":"#/$defs/a"}`,
		`{"$ref":"#/$defs/missing"}`, `{"$dynamicRef":"#a"}`, `{"$recursiveRef":"#"}`, `{"$id":"https://tenant.example/a","type":"string"}`,
		`{"pattern":"(a)\\1"}`, `{"pattern":"^(?=(?!a)b)c"}`, `{"pattern":"(a{1000}){1000}"}`, `{"pattern":"` + strings.Repeat("(", 900) + `"}`,
		`{"patternProperties":{"((((a?){9}b?){9}c?){9}d?){1,9}":{}}}`,
		strings.Repeat(`{"items":`, 33) + `{}` + strings.Repeat(`}`, 33),
		`{"type":"int"}`, `{"nullable":true}`, `{"enum":[]}`, `{"maximum":1e999}`, `{"multipleOf":0.01}`, `{"minLenght":5}`,
		bomb("allOf"), bomb("anyOf"), bomb("oneOf"),
	}
	for _, address := range []string{"http://" + inside + "/s.json", "http://" + inside + "/s.json#/$defs/a", "//" + inside + "/s",
		"file://" + file, file, "ftp://" + inside + "/s"} {
		for _, form := range []string{`{"$ref":%q}`, `{"$id":%q,"$ref":"#"}`, `{"$schema":%q}`,
			`{"properties":{"a":{"items":{"$ref":%q}}}}`, `{"$id":%q,"properties":{"a":{"$ref":"b"}}}`} {
			list = append(list, fmt.Sprintf(form, address))
		}
	}
	return list
}

// bomb returns a short schema that a naive engine evaluates 2^18 times.
func bomb(word string) string {
	var b strings.Builder
	b.WriteString(`{"$ref":"#/$defs/l18","$defs":{"l0":{"type":"string"}`)
	for i := range 18 {
		fmt.Fprintf(&b, `,"l%d":{%q:[{"$ref":"#/$defs/l%d"},{"$ref":"#/$defs/l%d"}]}`, i+1, word, i, i)
	}
	return b.String() + `}}`
}

// TestHostileSchemasHurtNobody sends hostile schemas from fifty clients at once. Each is rejected,
// nothing is fetched, and the answers to other clients are the same as without them.
func TestHostileSchemasHurtNobody(t *testing.T) {
	t.Parallel()
	inside := egresstest.NewCanary(t)
	w := newWorld(t)
	s := w.serve(t, nil)
	want := w.expected(t, s, 200)
	schemas := hostile(t, inside.Addr)

	var wg sync.WaitGroup
	for i := range 50 {
		wg.Go(func() {
			for k := range schemas {
				schema := schemas[(i+k)%len(schemas)]
				res, body, err := w.try(w.messages(s, map[string]any{"command": "@say never", "response_schema": json.RawMessage(schema),
					"stream": i%2 == 0}))
				if err != nil {
					t.Errorf("%.200s: %v", schema, err)
					return
				}
				var got struct {
					Error struct{ Code, Param, Message string }
				}
				if err := json.Unmarshal(body, &got); err != nil || res.StatusCode != http.StatusBadRequest ||
					got.Error.Code != "INVALID_RESPONSE_SCHEMA" {
					t.Errorf("%.200s: %s %.300s", schema, res.Status, body)
				}
			}
		})
	}
	normal := make(map[string]*[]frame)
	for range 4 {
		session, _ := w.start(t, s, "@text 200 deltas of 12 bytes at 200/s")
		frames := new([]frame)
		normal[session] = frames
		wg.Go(func() {
			var err error
			if *frames, err = w.follow(t.Context(), session, "", nil, s); err != nil {
				t.Error(err)
			}
		})
	}
	wait.Until(t, "all goroutines", wg.Wait)
	for session, frames := range normal {
		w.agree(t, session, *frames, want)
	}
	select {
	case <-s.gone:
		t.Error("the server has ended")
	default:
	}
	if peak := peakMemory(t, s); peak > 300<<20 && !slow.Race {
		t.Errorf("the server needed %d MB", peak>>20)
	}
	if n := w.turns(t); n != 5 {
		t.Errorf("%d turns, want the 5 that were requested", n)
	}
}
