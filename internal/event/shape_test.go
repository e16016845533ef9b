package event_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/event"
)

// Clients read these bytes. A release may add a kind, and a member to a kind; an existing member
// keeps its name, type and meaning as long as v is 1.
func TestKindsKeepTheirShape(t *testing.T) {
	t.Parallel()
	id := uuid.MustParse("0197a0b4-7c3e-7cc0-8a3a-2f6f0f1b7f10")
	const text = `"0197a0b4-7c3e-7cc0-8a3a-2f6f0f1b7f10"`
	at := time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
	cost := 0.25
	for _, c := range []struct {
		body event.Body
		want string
	}{
		{event.Open{SessionID: id}, `{"session_id":` + text + `}`},
		{event.Open{SessionID: id, FromSeq: new(int64(7))}, `{"session_id":` + text + `,"from_seq":7}`},
		{event.Text{Text: "Hel"}, `{"v":1,"text":"Hel"}`},
		{event.ToolUse{Tool: "read", Summary: "read a", ToolUseID: "c"}, `{"v":1,"tool":"read","summary":"read a","tool_use_id":"c"}`},
		{event.ToolResult{Tool: "read", OK: true, Output: "x", ToolUseID: "c"}, `{"v":1,"tool":"read","ok":true,"output":"x","tool_use_id":"c"}`},
		{event.ToolResult{Tool: "read", Output: "x", Truncated: true}, `{"v":1,"tool":"read","ok":false,"output":"x","truncated":true}`},
		{event.InputRequired{What: event.InputApproval, Plan: "p", ApprovalID: id, DecideURL: "/d", Reason: "r", ExpiresAt: at,
			Operations: []event.Operation{{ToolUseID: "c", Tool: "bash", Summary: "s", Input: json.RawMessage(`{"a":1}`),
				SuggestedPattern: "bash(ls)"}}},
			`{"v":1,"kind":"approval","plan":"p","operations":[{"tool_use_id":"c","tool":"bash","summary":"s","input":{"a":1},` +
				`"suggested_pattern":"bash(ls)"}],"approval_id":` + text +
				`,"decide_url":"/d","reason":"r","expires_at":"2026-01-31T12:00:00Z"}`},
		{event.InputRequired{What: event.InputSecret, KeyName: "KEY", ToolUseID: "c", ApprovalID: id, SecretURL: "/s", Reason: "r",
			ExpiresAt: at},
			`{"v":1,"kind":"secret","key_name":"KEY","tool_use_id":"c","approval_id":` + text +
				`,"secret_url":"/s","reason":"r","expires_at":"2026-01-31T12:00:00Z"}`},
		{event.Usage{InputTokens: 1, OutputTokens: 2, CostUSD: &cost, Model: "m"},
			`{"v":1,"input_tokens":1,"output_tokens":2,"cost_usd":0.25,"model":"m"}`},
		{event.Usage{InputTokens: 9, CachedInputTokens: 4, CacheWriteTokens: 3, OutputTokens: 2, CostUSD: &cost, Model: "m"},
			`{"v":1,"input_tokens":9,"output_tokens":2,"cost_usd":0.25,"model":"m","cached_input_tokens":4,"cache_write_tokens":3}`},
		{event.Usage{Model: "m"}, `{"v":1,"input_tokens":0,"output_tokens":0,"cost_usd":null,"model":"m"}`},
		{event.Structured{Result: json.RawMessage(`{"n":3}`)}, `{"v":1,"result":{"n":3}}`},
		{event.Attachment{Attachments: []event.File{{Filename: "a.txt", MIME: "text/plain", Size: 5, DownloadURL: "https://x/?a=1&b=2"}}},
			`{"v":1,"attachments":[{"filename":"a.txt","mime":"text/plain","size":5,"download_url":"https://x/?a=1&b=2"}]}`},
		{event.TimedOut.Failure("Too long."), `{"v":1,"code":"timed_out","message":"Too long.","recoverable":true}`},
		{event.Done{SessionID: id}, `{"v":1,"session_id":` + text + `}`},
		{event.Done{SessionID: id, Resumed: new(false)}, `{"v":1,"session_id":` + text + `,"resumed":false}`},
	} {
		if got, err := event.Encode(c.body); err != nil || string(got) != c.want {
			t.Errorf("%s is written as\n%s, want\n%s (%v)", c.body.Kind(), got, c.want, err)
		}
	}
}
