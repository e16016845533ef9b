package canary_test

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/parley-server/parley/internal/testing/dbtest/canary"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// writings are the forms in which programs write a value between other bytes.
var writings = map[string]func(before, value, after string) string{
	"plain":     func(b, v, a string) string { return b + v + a },
	"hex":       func(b, v, a string) string { return hex.EncodeToString([]byte(b + v + a)) },
	"HEX":       func(b, v, a string) string { return strings.ToUpper(hex.EncodeToString([]byte(b + v + a))) },
	"base64":    func(b, v, a string) string { return base64.StdEncoding.EncodeToString([]byte(b + v + a)) },
	"base64url": func(b, v, a string) string { return base64.URLEncoding.EncodeToString([]byte(b + v + a)) },
	"query":     func(b, v, a string) string { return "https://x/?" + url.Values{"a": {b + v + a}}.Encode() },
	"path":      func(b, v, a string) string { return "https://x/" + url.PathEscape(b+v+a) },
	"json": func(b, v, a string) string {
		out, _ := json.Marshal(map[string]string{"a": b + v + a})
		return string(out)
	},
	"json without HTML": func(b, v, a string) string {
		var out bytes.Buffer
		enc := json.NewEncoder(&out)
		enc.SetEscapeHTML(false)
		_ = enc.Encode(b + v + a)
		return out.String()
	},
	"quoted": func(b, v, a string) string { return fmt.Sprintf("%q", b+v+a) },
	"bytes":  func(b, v, a string) string { return fmt.Sprint([]byte(b + v + a)) },
	"Go":     func(b, v, a string) string { return fmt.Sprintf("%#v", []byte(b+v+a)) },
	"cut":    func(b, v, _ string) string { return b + v[:30] },
	"SQL":    func(b, v, a string) string { return "'" + strings.ReplaceAll(b+v+a, "'", "''") + "'" },
}

func TestNoWritingHidesAValue(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		before, after := rapid.String().Draw(rt, "before"), rapid.String().Draw(rt, "after")
		for name, write := range writings {
			value := canary.New()
			text := write(before, value, after)
			if canary.Find(t, value, canary.Bytes("text", []byte(text))) == nil {
				rt.Fatalf("not found in %s: %s", name, text)
			}
			if found := canary.Find(t, canary.New(), canary.Bytes("text", []byte(text))); found != nil {
				rt.Fatalf("another value is found in %s: %v", name, found)
			}
		}
	})
}

func TestValuesOfWordsAreFoundInEveryWriting(t *testing.T) {
	t.Parallel()
	const value = "a <b> & c d/e+f?g" // no part of it is long enough for the search
	for name, write := range writings {
		if name == "cut" {
			continue
		}
		for _, before := range []string{"", "x", "xy", "xyz"} {
			if canary.Find(t, value, canary.Bytes("text", []byte(write(before, value, "tail")))) == nil {
				t.Errorf("not found in %s after %q", name, before)
			}
		}
	}
}

func TestFilesAreSearchedToTheBottom(t *testing.T) {
	t.Parallel()
	value, dir := canary.New(), t.TempDir()
	for _, path := range []string{"a/b/c.txt", "skipped/d.txt", "e.txt"} {
		path = filepath.Join(dir, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("…"+value), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var places []string
	for _, f := range canary.Find(t, value, canary.Files("files", dir, "skipped")) {
		if f.Form == "plain" {
			places = append(places, strings.TrimPrefix(f.Place, dir))
		}
	}
	if got := strings.Join(places, " "); got != "/a/b/c.txt /e.txt" {
		t.Errorf("found in %s", got)
	}
}
