package a2a_test

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/parley-server/parley/internal/server/a2a"
)

// TestWhatIsNoRequestIsToldAsJSONRPC checks that invalid JSON-RPC requests get JSON-RPC errors,
// with the request's id if it has one.
func TestWhatIsNoRequestIsToldAsJSONRPC(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	for _, test := range []struct {
		body, version, id string
		code              int
	}{
		{`{"jsonrpc":"2.0","method":"GetTask","id":1`, "", "null", -32700},
		{`no`, "", "null", -32700},
		{`{"id":1,"id":2}`, "", "null", -32700},
		{``, "", "null", -32700},
		{`[]`, "", "null", -32600},
		{`[{"jsonrpc":"2.0","id":1,"method":"GetTask","params":{"id":"x"}}]`, "", "null", -32600},
		{`7`, "", "null", -32600},
		{`{"jsonrpc":"2.0","method":"GetTask","params":{}}`, "", "null", -32600},
		{`{"jsonrpc":"2.0","id":null,"method":"GetTask"}`, "", "null", -32600},
		{`{"jsonrpc":"2.0","id":1.5,"method":"GetTask"}`, "", "null", -32600},
		{`{"jsonrpc":"2.0","id":{"a":1},"method":"GetTask"}`, "", "null", -32600},
		{`{"jsonrpc":"1.0","id":"a","method":"GetTask"}`, "", `"a"`, -32600},
		{`{"id":7,"method":"GetTask"}`, "", "7", -32600},
		{`{"jsonrpc":"2.0","id":7}`, "", "7", -32600},
		{`{"jsonrpc":"2.0","id":7,"method":3}`, "", "7", -32600},
		{`{"jsonrpc":"2.0","id":7,"method":"GetTask","params":[1]}`, "", "7", -32602},
		{`{"jsonrpc":"2.0","id":7,"method":"GetTask","params":"x"}`, "", "7", -32602},
		{`{"jsonrpc":"2.0","id":-7,"method":"GetTask"}`, "", "-7", -32602},
		{`{"jsonrpc":"2.0","id":"\u00e9","method":"GetTask","params":{"id":7}}`, "", `"\u00e9"`, -32602},
		{`{"jsonrpc":"2.0","id":7,"method":"GetTask","params":{"id":"x"}}`, "", "7", -32001},
		{`{"jsonrpc":"2.0","id":7,"method":"nonsense"}`, "", "7", -32601},
		{`{"jsonrpc":"2.0","id":7,"method":"tasks/get","params":{"id":"x"}}`, "", "7", -32001},
		{`{"jsonrpc":"2.0","id":7,"method":"tasks/get","params":{"id":"x"}}`, "0.3", "7", -32001},
		{`{"jsonrpc":"2.0","id":7,"method":"tasks/get","params":{"id":"x"}}`, "0.3.0", "7", -32001},
		{`{"jsonrpc":"2.0","id":7,"method":"tasks/get","params":{"id":"x"}}`, "1.0", "7", -32601},
		{`{"jsonrpc":"2.0","id":7,"method":"GetTask","params":{"id":"x"}}`, "1.0.1", "7", -32001},
		{`{"jsonrpc":"2.0","id":7,"method":"GetTask","params":{"id":"x"}}`, "0.3", "7", -32601},
		{`{"jsonrpc":"2.0","id":7,"method":"ListTasks"}`, "0.3", "7", -32601},
		{`{"jsonrpc":"2.0","id":7,"method":"GetTask","params":{"id":"x"}}`, "0.2", "7", -32009},
		{`{"jsonrpc":"2.0","id":7,"method":"GetTask","params":{"id":"x"}}`, "2.0", "7", -32009},
		{`{"jsonrpc":"2.0","id":7,"method":"GetTask","params":{"id":"x"}}`, "latest", "7", -32009},
		{`{"jsonrpc":"2.0","id":7,"method":"SendMessage","params":{}}`, "", "7", -32602},
		{`{"jsonrpc":"2.0","id":7,"method":"SendMessage","params":{"message":{"parts":"invalid"}}}`, "", "7", -32602},
		{`{"jsonrpc":"2.0","id":7,"method":"SendMessage","params":{"message":{"messageId":"m","role":"ROLE_USER","parts":[]}}}`, "", "7", -32602},
		{`{"jsonrpc":"2.0","id":7,"method":"SendMessage","params":{"message":{"messageId":"m","role":"ROLE_USER","parts":[{}]}}}`, "",
			"7", -32602},
		{`{"jsonrpc":"2.0","id":7,"method":"SendMessage","params":{"message":{"messageId":"m","role":"ROLE_USER",` +
			`"parts":[{"text":" "}]}}}`, "", "7", -32602},
		{`{"jsonrpc":"2.0","id":7,"method":"SendMessage","params":{"message":{"messageId":"m","role":"user",` +
			`"parts":[{"text":"x"}]}}}`, "", "7", -32602},
		{`{"jsonrpc":"2.0","id":7,"method":"SendMessage","params":{"message":{"role":"ROLE_USER","parts":[{"text":"x"}]}}}`, "", "7", -32602},
		{
			`{"jsonrpc":"2.0","id":7,"method":"SendMessage","params":{"message":{"messageId":"m","role":"ROLE_USER",` +
				`"parts":[{"text":"x"}]},"configuration":{"historyLength":-1}}}`, "", "7", -32602},
		{
			`{"jsonrpc":"2.0","id":7,"method":"message/send","params":{"message":{"messageId":"m","role":"ROLE_USER",` +
				`"parts":[{"kind":"text","text":"x"}]}}}`, "", "7", -32602},
		{
			`{"jsonrpc":"2.0","id":7,"method":"message/send","params":{"message":{"messageId":"m","role":"user","parts":[{"kind":"data",` +
				`"data":[1]}]}}}`, "", "7", -32602},
	} {
		c := s.speaks(t, test.version)
		res := c.post(t.Context(), test.body)
		text, err := io.ReadAll(res.Body)
		res.Body.Close()
		var got struct {
			JSONRPC string
			ID      json.RawMessage
			Error   *rpcError
			Result  json.RawMessage
		}
		if err != nil || json.Unmarshal(text, &got) != nil || res.StatusCode != 200 || got.JSONRPC != "2.0" || string(got.ID) != test.id ||
			got.Error == nil ||
			got.Error.Code != test.code || got.Error.Message == "" || got.Result != nil || res.Header.Get("Content-Type") != "application/json" {
			t.Errorf("%s %s: %d %s", test.version, test.body, res.StatusCode, text)
		}
		if strings.Contains(test.body, "SendMessage") && got.Error != nil && test.code == -32602 &&
			!strings.Contains(string(got.Error.Data), "google.rpc.BadRequest") {
			t.Errorf("%s: %s", test.body, got.Error.Data)
		}
	}
}

// TestTheVersionInTheQuery checks that the version may be in the query and that the address may end
// with a slash.
func TestTheVersionInTheQuery(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	r, _ := http.NewRequestWithContext(t.Context(), "POST", s.URL+a2a.Path+"/?A2A-Version=1.0",
		strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"tasks/get","params":{"id":"x"}}`))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer "+s.key)
	res, err := s.client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if text, _ := io.ReadAll(res.Body); !strings.Contains(string(text), "-32601") {
		t.Errorf("%s", text)
	}
}

// FuzzBody checks that the response to any body is JSON-RPC or the REST error envelope, and never
// an internal error.
func FuzzBody(f *testing.F) {
	for _, seed := range []string{`{"jsonrpc":"2.0","id":1,"method":"GetTask","params":{"id":"x"}}`, `[]`,
		`{"jsonrpc":"2.0","id":"\ud800","method":"tasks/get","params":{"id":"\u0000"}}`,
		`{"jsonrpc":"2.0","id":1,"method":"ListTasks","params":{"pageToken":"x","status":"TASK_STATE_WORKING","contextId":"y"}}`,
		`{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{"message":{"messageId":"m","role":"ROLE_USER","taskId":"x",` +
			`"parts":[{"data":{"decision":"allow"}},{"text":null}]}}}`} {
		f.Add(seed)
	}
	s := start(f, nil)
	f.Fuzz(func(t *testing.T, body string) {
		if strings.Contains(body, "@wait") {
			return
		}
		c := s.speaks(t, "")
		res := c.post(t.Context(), body)
		defer res.Body.Close()
		text, err := io.ReadAll(res.Body)
		if err != nil || res.StatusCode >= 500 || strings.Contains(string(text), "-32603") ||
			!strings.HasPrefix(res.Header.Get("Content-Type"), "text/event-stream") && !json.Valid(text) {
			t.Errorf("%q: %d %s %v", body, res.StatusCode, text, err)
		}
	})
}
