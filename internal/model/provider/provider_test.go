package provider_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/parley-server/parley/internal/model"
	"github.com/parley-server/parley/internal/model/provider"
)

func TestRetryAfterReadsWhatProvidersSend(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		ms, after string
		want      time.Duration
	}{
		{"", "", 0},
		{"", "30", 30 * time.Second},
		{"", " 1.5 ", 1500 * time.Millisecond},
		{"250", "30", 250 * time.Millisecond},
		{"soon", "30", 30 * time.Second},
		{"", "Sun, 01 Mar 2026 12:02:00 GMT", 2 * time.Minute},
		{"", "Sunday, 01-Mar-26 12:02:00 GMT", 2 * time.Minute},
		{"", "Sun, 01 Mar 2026 11:00:00 GMT", 0},
		{"", "Sun, 01 Mar 2099 11:00:00 GMT", 24 * time.Hour},
		{"", "-5", 0},
		{"", "NaN", 0},
		{"", "1e300", 24 * time.Hour},
		{"", "Inf", 24 * time.Hour},
		{"", "later", 0},
	} {
		h := http.Header{}
		h.Set("retry-after-ms", c.ms)
		h.Set("retry-after", c.after)
		if got := provider.RetryAfter(h, now); got != c.want {
			t.Errorf("retry-after-ms %q, retry-after %q: %v, want %v", c.ms, c.after, got, c.want)
		}
	}
}

func TestHistoryNamesAreAcceptedEverywhere(t *testing.T) {
	t.Parallel()
	good := func(s string, longest int) bool {
		return s != "" && len(s) <= longest && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") == ""
	}
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.OneOf(rapid.String(), rapid.StringMatching(`[a-z_A-Z0-9-]{0,80}`)).Draw(t, "name")
		id, tool := provider.CallID(s), provider.ToolName(s)
		if !good(id, 40) || !good(tool, 64) {
			t.Fatalf("%q becomes the id %q and the name %q", s, id, tool)
		}
		if good(s, 40) && (id != s || tool != s) {
			t.Fatalf("the valid name %q becomes %q and %q", s, id, tool)
		}
		if id != provider.CallID(s) || id != provider.CallID(id) {
			t.Fatalf("the id %q has more than one form", s)
		}
	})
}

func TestObjectIsAlwaysAnObject(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{"": "{}", "null": "{}", "[1]": "{}", `{"a":`: "{}", ` {"a":1} `: `{"a":1}`} {
		if got := string(provider.Object(json.RawMessage(in), "{}")); got != want {
			t.Errorf("Object(%q) = %s, want %s", in, got, want)
		}
	}
}

func TestBlankBeginningsAreNotContinued(t *testing.T) {
	t.Parallel()
	req := model.Request{Messages: []model.Message{{Role: model.User, Text: "Hi"}}, Partial: " \n"}
	if got := provider.Messages(req); len(got) != 1 {
		t.Errorf("%+v", got)
	}
}

func TestReportedFailuresOfAnyShape(t *testing.T) {
	t.Parallel()
	s := provider.Service{Name: "openai", Model: "m"}
	rapid.Check(t, func(t *rapid.T) {
		body := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{
			`[]`, `[{"error":{"code":429}}]`, `{"error":null}`, `{"error":[]}`, `{"error":{"code":{},"type":[],"message":7}}`,
			`{"code":400,"object":"error","message":"x"}`, `{"error":{"code":99999999999999999999}}`, `{"error":{"code":-1}}`,
		})).Draw(t, "body")
		e := s.Reported([]byte(body))
		if e.Message == "" || e.Code == "" || e.Err == nil {
			t.Fatalf("%q: %+v", body, e)
		}
	})
}
