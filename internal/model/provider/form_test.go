package provider_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/parley-server/parley/internal/model/provider"
	"github.com/parley-server/parley/internal/schema"
)

// TestFormsMeanWhatTheSchemaMeans takes schemas of pydantic and zod: each form is an object schema
// with the same meaning.
func TestFormsMeanWhatTheSchemaMeans(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../../schema/testdata/accepted/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("no schemas: %v", err)
	}
	wrapped := 0
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		original, err := schema.Compile(raw)
		if err != nil {
			t.Fatal(err)
		}
		form := provider.FormOf(raw)
		sent, err := schema.Compile(form.Schema)
		if err != nil {
			t.Errorf("%s: the form %s is rejected: %v", file, form.Schema, err)
			continue
		}
		sample, _ := original.Sample("some words")
		written := sample
		if string(form.Schema) != strings.TrimSpace(string(raw)) {
			wrapped++
			written = json.RawMessage(`{"value": ` + string(sample) + `}`)
			if bad := sent.Validate(json.RawMessage(`{"value": {"neither": "nor"}}`)); bad == nil && !strings.Contains(file, "json-value") {
				t.Errorf("%s: the form %s accepts anything", file, form.Schema)
			}
		}
		if bad := sent.Validate(written); bad != nil {
			t.Errorf("%s: %s is not valid in the form %s: %v", file, written, form.Schema, bad)
		}
		if got := form.Value(written); string(got) != string(sample) {
			t.Errorf("%s: %s is unwrapped as %s", file, written, got)
		}
	}
	if wrapped < 10 || wrapped == len(files) {
		t.Errorf("%d of %d schemas were wrapped", wrapped, len(files))
	}
}

func TestFormsKeepTheOrderOfProperties(t *testing.T) {
	t.Parallel()
	form := provider.FormOf(json.RawMessage(`{"description":"z before a","anyOf":[{"properties":{"z":{},"a":{}}}],` +
		`"$schema":"https://json-schema.org/draft/2020-12/schema","$defs":{"b":{},"a":{}}}`))
	const want = `{"type":"object","properties":{"value":{"description":"z before a","anyOf":[{"properties":{"z":{},"a":{}}}]}},` +
		`"required":["value"],"additionalProperties":false,"$defs":{"b":{},"a":{}}}`
	if string(form.Schema) != want {
		t.Errorf("%s, want %s", form.Schema, want)
	}
}
