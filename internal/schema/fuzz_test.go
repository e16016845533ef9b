package schema_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/parley-server/parley/internal/schema"
)

// FuzzSchema uses any bytes as schema and value. Nothing panics or hangs, rejections name a reason,
// and a schema's own sample fits it.
func FuzzSchema(f *testing.F) {
	values := []string{`{}`, `[]`, `"x"`, `1`, `null`, `{"a":{"a":{"a":1}}}`, `[[[["x"]]]]`, `{"kind":"cat"}`, `{`, `1e999`}
	for i, h := range hostile {
		if len(h.raw) < 2000 {
			f.Add([]byte(h.raw), []byte(values[i%len(values)]))
		}
	}
	for _, folder := range []string{"accepted", "refused"} {
		files, err := filepath.Glob(filepath.Join("testdata", folder, "*.json"))
		if err != nil {
			f.Fatal(err)
		}
		for i, file := range files {
			data, err := os.ReadFile(file)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(data, []byte(values[i%len(values)]))
		}
	}
	f.Add([]byte(`{"type":"string","pattern":"^(a*b*)*$","minLength":2147483647}`), []byte(`""`))
	f.Fuzz(func(t *testing.T, raw, value []byte) {
		s, err := schema.Compile(raw)
		if err != nil {
			if e, ok := errors.AsType[*schema.Error](err); !ok || e.Reason == "" || e.Path != "" && e.Path[0] != '/' {
				t.Fatalf("refused with %#v", err)
			}
			return
		}
		for _, bad := range s.Validate(value) {
			if bad.Message == "" || bad.Path != "" && bad.Path[0] != '/' {
				t.Fatalf("violation %#v", bad)
			}
		}
		if !json.Valid(value) && s.Validate(value) == nil {
			t.Fatalf("%q fits", value)
		}
		sample, ok := s.Sample(strings.ToValidUTF8(string(value), ""))
		if bad := s.Validate(sample); ok && bad != nil {
			t.Fatalf("the sample %s is not valid: %v", sample, bad)
		}
		if again, _ := s.Sample(strings.ToValidUTF8(string(value), "")); string(again) != string(sample) {
			t.Fatalf("two samples: %s and %s", sample, again)
		}
	})
}
