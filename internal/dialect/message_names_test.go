package dialect_test

import "testing"

// Chat messages are decoded by the exact names of their members: what another reader of the same
// text does not see is not seen here.
func TestChatNamesAreExact(t *testing.T) {
	t.Parallel()
	s := start(t, options{})
	for path, body := range map[string]string{
		completions: `{"model":"demo","messages":[{"ROLE":"user","content":"x"}]}`,
		responses:   `{"model":"demo","input":[{"role":"user","Content":"x"}]}`,
		chats:       `{"id":"c","messages":[{"id":"m","role":"user","parts":[{"type":"text","TEXT":"x"}]}]}`,
	} {
		if r := s.get(t, call{path: path, body: body}); r.status != 400 || r.code != "INVALID_REQUEST" {
			t.Errorf("%s: %d %s", path, r.status, r.text)
		}
	}
}
