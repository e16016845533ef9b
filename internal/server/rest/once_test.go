package rest_test

import (
	"strings"
	"testing"
	"time"
)

func TestCancelIsIdempotentUnderAKey(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	st := s.say(t, held)
	id := sessionOf(t, st.until("open")[0])
	s.Gate.Await(t)
	cancel := call{method: "POST", path: "sessions/" + id + "/cancel", header: []string{"Idempotency-Key", "one"}}
	first := s.get(t, cancel)
	if first.status != 200 || !strings.Contains(first.text, `"canceled":true`) || first.header.Get("Idempotent-Replayed") != "" {
		t.Fatalf("%d %s", first.status, first.text)
	}
	for range 2 {
		if r := s.get(t, cancel); r.status != 200 || r.text != first.text || r.header.Get("Idempotent-Replayed") != "true" {
			t.Errorf("again: %d %s", r.status, r.text)
		}
	}
	plain := cancel
	plain.header = nil
	if r := s.get(t, plain); !strings.Contains(r.text, `"canceled":false`) || r.header.Get("Idempotent-Replayed") != "" {
		t.Errorf("without a key: %s", r.text)
	}
	st.rest()
	other := cancel
	other.path = "sessions/" + sessionOf(t, s.say(t, "@text 1 delta").rest()[0]) + "/cancel"
	if r := s.get(t, other); r.status != 422 || r.Error.Code != "IDEMPOTENCY_KEY_REUSED" || r.Error.Type != "idempotency_error" {
		t.Errorf("of another session: %d %s", r.status, r.text)
	}
	for _, key := range []string{strings.Repeat("x", 256), "é"} {
		other.header = []string{"Idempotency-Key", key}
		if r := s.get(t, other); r.status != 400 || r.Error.Param != "Idempotency-Key" {
			t.Errorf("%.20q: %d %s", key, r.status, r.text)
		}
	}
}

func TestDecisionsAreIdempotentUnderAKey(t *testing.T) {
	t.Parallel()
	s := startTurns(t, nil, asking(time.Minute))
	q := s.say(t, "@call gate {}\n@say Fine.").asked()
	decide := call{method: "POST", path: q.DecideURL, body: deny, header: []string{"Idempotency-Key", "one"}}
	bad := decide
	bad.body = `{"decision":"perhaps"}`
	if r := s.get(t, bad); r.status != 400 {
		t.Errorf("%d %s", r.status, r.text)
	}
	first := s.get(t, decide) // an error is not stored under the key
	if first.status != 200 || !strings.Contains(first.text, `"already_decided":false`) {
		t.Fatalf("%d %s", first.status, first.text)
	}
	if r := s.get(t, decide); r.text != first.text || r.header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("again: %d %s", r.status, r.text)
	}
	opposite := decide
	opposite.body = allow
	if r := s.get(t, opposite); r.status != 422 {
		t.Errorf("another decision under the key: %d %s", r.status, r.text)
	}
}

// TestSecretsAreIdempotentUnderAKey checks that the value of a secret is not part of the comparison
// of requests, and is not stored with it.
func TestSecretsAreIdempotentUnderAKey(t *testing.T) {
	t.Parallel()
	s := startTurns(t, nil, nil)
	const canary = "c4n4ry-sup3r-s3cr3t"
	s.register(t, "STRIPE_KEY")
	q := s.say(t, `@call request_secret {"key_name":"STRIPE_KEY","reason":"to refund"}`+"\n@say Done.").asked()
	provide := call{method: "POST", path: q.SecretURL, body: `{"action":"provide","value":"` + canary + `"}`,
		header: []string{"Idempotency-Key", "one"}}
	first := s.get(t, provide)
	if first.status != 200 || !strings.Contains(first.text, `"provided"`) {
		t.Fatalf("%d %s", first.status, first.text)
	}
	provide.body = strings.Replace(provide.body, canary, "another-value", 1)
	if r := s.get(t, provide); r.text != first.text || r.header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("again: %d %s", r.status, r.text)
	}
	if kept := s.rows(t)["idempotent_answers"]; kept == "[]" || strings.Contains(kept, canary) {
		t.Errorf("kept: %s", kept)
	}
}
