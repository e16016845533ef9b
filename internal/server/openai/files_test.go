package openai_test

import (
	"encoding/base64"
	"strings"
	"testing"

	"github.com/parley-server/parley/internal/testing/apitest"
)

// aPixel is a PNG of one pixel.
const aPixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=="

// TestFilesInMessages checks that images and files in a message are its attachments, in the formats
// of both APIs, and that a file that cannot be one is an error.
func TestFilesInMessages(t *testing.T) {
	t.Parallel()
	s := start(t, apitest.ChatOptions{})
	const image = "data:image/png;base64," + aPixel
	text := base64.StdEncoding.EncodeToString([]byte("a,b\n1,2\n"))
	for part, c := range map[string]struct{ path, name string }{
		`{"type":"image_url","image_url":{"url":"` + image + `"}}`:                                    {apitest.CompletionsPath, "image.png"},
		`{"type":"file","file":{"filename":"a.csv","file_data":"data:text/csv;base64,` + text + `"}}`: {apitest.CompletionsPath, "a.csv"},
		`{"type":"input_image","image_url":"` + image + `"}`:                                          {apitest.ResponsesPath, "image.png"},
		`{"type":"input_file","filename":"a.csv","file_data":"` + text + `"}`:                         {apitest.ResponsesPath, "a.csv"},
	} {
		body := `{"model":"demo","messages":[{"role":"user","content":[{"type":"text","text":"count to 2"},` + part + `]}]}`
		if c.path == apitest.ResponsesPath {
			body = strings.Replace(body, "messages", "input", 1)
		}
		r := s.Get(t, apitest.Call{Path: c.path, Body: body})
		var name string
		err := s.Pool.QueryRow(t.Context(), "SELECT f.filename FROM turn_files a JOIN files f ON f.id = a.file_id JOIN turns t ON t.id "+
			"= a.turn_id WHERE t.session_id = $1", r.Body["session_id"]).Scan(&name)
		if err != nil || r.Status != 200 || name != c.name || r.Header.Get("X-Parley-Ignored") != "" {
			t.Errorf("%s: %d %s %q %v", part, r.Status, r.Text, name, err)
		}
	}
	for _, part := range []string{
		`{"type":"image_url","image_url":{"url":"https://example.com/a.png"}}`, `{"type":"image_url","image_url":"data:image/png;base64,%"}`,
		`{"type":"file","file":{"file_id":"file-7"}}`, `{"type":"input_audio","input_audio":{"data":"","format":"mp3"}}`,
		`{"type":"file","file":{"filename":"a.exe","file_data":"data:image/png;base64,` + text + `"}}`,
	} {
		if r := s.Get(t, apitest.Call{Path: apitest.CompletionsPath,
			Body: `{"model":"demo","messages":[{"role":"user","content":[{"type":"text","text":"x"},` + part + `]}]}`}); r.Status < 400 ||
			r.Status >= 500 {
			t.Errorf("%s: %d %s", part, r.Status, r.Text)
		}
	}
}
