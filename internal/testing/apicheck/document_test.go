package apicheck

import (
	"net/http"
	"strings"
	"testing"
)

const api = `{"openapi": "3.1.0", "info": {"title": "t", "version": "1"},
 "paths": {"/thing": {"get": {"responses": {
  "200": {"description": "d", "headers": {"X-Count": {"required": true, "schema": {"type": "integer"}}, "X-Mark": {"schema": {"enum": ["a"], "type": "string"}}},
   "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Thing"}}, "text/plain": {"schema": {"type": "string"}}}},
  "204": {"description": "d"}}}}},
 "components": {"schemas": {
  "Thing": {"type": "object", "required": ["at"], "properties": {"at": {"type": "string", "format": "date-time"}, "part": {"$ref": "#/components/schemas/Part"}}},
  "Part": {"type": "object", "properties": {"n": {"type": "integer"}}}}}}`

// TestResponsesThatDifferFromTheDocument checks responses that differ from a document in one respect
// each, and some that do not.
func TestResponsesThatDifferFromTheDocument(t *testing.T) {
	t.Parallel()
	d, err := parse([]byte(api))
	if err != nil {
		t.Fatal(err)
	}
	op := d.Paths.Value("/thing").Get
	const at, json = `{"at": "2026-01-02T03:04:05Z"`, "application/json"
	for name, c := range map[string]struct {
		status      int
		count, mark string // "-": no such header
		kind, body  string
		want        string // a part of the error; "": none
	}{
		"as documented":     {200, "1", "a", json, at + `, "part": {"n": 1}}`, ""},
		"in words":          {200, "1", "-", "text/plain", "words", ""},
		"without a body":    {204, "-", "-", "", "", ""},
		"status":            {201, "1", "-", json, at + "}", "no status 201"},
		"missing header":    {200, "-", "-", json, at + "}", "no header X-Count"},
		"header":            {200, "many", "-", json, at + "}", "X-Count"},
		"optional header":   {200, "1", "b", json, at + "}", "X-Mark"},
		"empty header":      {200, "1", "", json, at + "}", "X-Mark"},
		"content type":      {200, "1", "-", "text/html", "<p>", "text/html"},
		"not JSON":          {200, "1", "-", json, "words", "invalid character"},
		"missing member":    {200, "1", "-", json, "{}", "at"},
		"format":            {200, "1", "-", json, `{"at": "today"}`, "date-time"},
		"undocumented":      {200, "1", "-", json, at + `, "more": 1}`, "more"},
		"undocumented part": {200, "1", "-", json, at + `, "part": {"more": 1}}`, "more"},
		"type in a part":    {200, "1", "-", json, at + `, "part": {"n": "1"}}`, "/part/n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			header := http.Header{"Content-Type": {c.kind}}
			for name, value := range map[string]string{"X-Count": c.count, "X-Mark": c.mark} {
				if value != "-" {
					header.Set(name, value)
				}
			}
			err := d.checkResponse(op, c.status, header, []byte(c.body))
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("%v; want %q", err, c.want)
			}
		})
	}
}
