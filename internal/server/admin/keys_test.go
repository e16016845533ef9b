package admin_test

import (
	"strings"
	"testing"

	"github.com/parley-server/parley/internal/store/apikey"
)

type key struct {
	ID         string `json:"key_id"`
	Key, Name  string
	Scopes     []string
	ExpiresAt  *string `json:"expires_at"`
	RevokedAt  *string `json:"revoked_at"`
	ReplacedBy *string `json:"replaced_by"`
}

// TestKeysAreAdministered creates, changes, rolls and revokes a key. Its text is in one response
// only, not in that to a repeat.
func TestKeysAreAdministered(t *testing.T) {
	t.Parallel()
	s := start(t)
	const body = `{"name":"backend","scopes":["chat"],"expires_in":3600}`
	var made, again, got key
	s.must(t, "POST keys", body, &made, "Idempotency-Key", "k1")
	r := s.must(t, "POST keys", body, &again, "Idempotency-Key", "k1")
	if made.Key == "" || made.ExpiresAt == nil || again.ID != made.ID || again.Key != "" || r.header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("made %+v, again %+v", made, again)
	}
	s.refused(t, "IDEMPOTENCY_KEY_REUSED", "POST keys", `{"name":"other","scopes":["chat"]}`, "Idempotency-Key", "k1")
	var stored int
	if err := s.Pool.QueryRow(t.Context(), `SELECT count(*) FROM idempotent_answers WHERE position($1 IN convert_from(answer, 'UTF8')) > 0`,
		made.Key).Scan(&stored); err != nil || stored != 0 {
		t.Errorf("the key is stored %d times: %v", stored, err)
	}
	if r := s.do(t, "GET /api/v1/workspaces/demo", "", "Authorization", "Bearer "+made.Key); r.status != 403 {
		t.Errorf("the new key: %d %s", r.status, r.text)
	}
	s.must(t, "PATCH keys/"+made.ID, `{"name":"renamed","expires_at":null}`, &got)
	if got.Name != "renamed" || got.ExpiresAt != nil {
		t.Errorf("changed to %+v", got)
	}
	var rolled key
	s.must(t, "POST keys/"+made.ID+"/roll", `{"overlap_seconds":60}`, &rolled)
	s.must(t, "GET keys/"+made.ID, "", &got)
	if rolled.Key == "" || got.ReplacedBy == nil || *got.ReplacedBy != rolled.ID || got.ExpiresAt == nil {
		t.Errorf("rolled to %+v from %+v", rolled, got)
	}
	s.refused(t, "OBJECT_CONFLICT", "POST keys/"+made.ID+"/roll", `{}`)
	if s.must(t, "DELETE keys/"+rolled.ID, "", &got); got.RevokedAt == nil {
		t.Errorf("revoked: %+v", got)
	}
	s.refused(t, "OBJECT_NOT_FOUND", "DELETE keys/"+rolled.ID, "")
	s.refused(t, "OBJECT_NOT_FOUND", "GET keys/absent00", "")
}

// TestKeysGrantNoMoreThanTheirOwn checks creation, rolling and the webhook_token with a key that
// has the scope admin alone.
func TestKeysGrantNoMoreThanTheirOwn(t *testing.T) {
	t.Parallel()
	s := start(t)
	all := s.Issue(t, s.Workspace, apikey.All...)
	narrow := []string{"Authorization", "Bearer " + s.Issue(t, s.Workspace, apikey.Admin)}
	s.refused(t, "INSUFFICIENT_SCOPE", "POST keys", `{"name":"x","scopes":["chat"]}`, narrow...)
	s.refused(t, "INSUFFICIENT_SCOPE", "POST keys", `{"name":"x","scopes":["server:admin"]}`, narrow...)
	s.refused(t, "INSUFFICIENT_SCOPE", "POST keys/"+all[4:12]+"/roll", `{}`, narrow...)
	s.refused(t, "INSUFFICIENT_SCOPE", "POST webhook-token/roll", "", narrow...)
	s.must(t, "POST keys", `{"name":"x","scopes":["config:write"]}`, nil, narrow...)
	for body, param := range map[string]string{
		`{"scopes":["chat"]}`: "/name", `{"name":"x","scopes":["chatt"]}`: "/scopes", `{"name":"x","scopes":["chat"],"expires":1}`: "/expires",
	} {
		if r := s.refused(t, "INVALID_REQUEST", "POST keys", body); len(r.Error.Violations) != 1 || r.Error.Violations[0].Param != param {
			t.Errorf("%s: %s", body, r.text)
		}
	}
}

// TestWebhookTokenIsAdministered rolls and revokes the token.
func TestWebhookTokenIsAdministered(t *testing.T) {
	t.Parallel()
	s := start(t)
	type token struct {
		Exists bool
		Text   string `json:"webhook_token"`
	}
	var first, second, now token
	s.must(t, "POST webhook-token/roll", "", &first)
	s.must(t, "POST webhook-token/roll", "", &second)
	if !strings.HasPrefix(first.Text, "whtok_") || first.Text == second.Text {
		t.Errorf("%+v, %+v", first, second)
	}
	if s.must(t, "GET webhook-token", "", &now); !now.Exists || now.Text != "" {
		t.Errorf("%+v", now)
	}
	s.must(t, "DELETE webhook-token", "", nil)
	if s.must(t, "GET webhook-token", "", &now); now.Exists {
		t.Errorf("%+v", now)
	}
}

// TestListsHavePages reads the keys in pages of one.
func TestListsHavePages(t *testing.T) {
	t.Parallel()
	s := start(t)
	for range 3 {
		s.Issue(t, s.Workspace, apikey.Chat)
	}
	seen, path := map[string]bool{}, "GET keys?limit=1"
	for {
		var page []key
		r := s.must(t, path, "", &page)
		seen[page[0].ID] = true
		if !r.HasMore {
			break
		}
		path = "GET keys?limit=1&cursor=" + *r.NextCursor
	}
	if len(seen) != 4 {
		t.Errorf("%d keys", len(seen))
	}
	s.refused(t, "INVALID_CURSOR", "GET keys?cursor=x", "")
	for _, query := range []string{"limit=0", "limit=101", "limit=x", "lmit=1", "limit=1&limit=2", "cursor="} {
		s.refused(t, "INVALID_REQUEST", "GET keys?"+query, "")
	}
}
