package admin_test

import (
	"strings"
	"testing"
	"time"

	"github.com/parley-server/parley/internal/store/apikey"
)

// TestAgentsArePaused pauses and resumes the workspace and the server. The switch names the key,
// and a key of a workspace cannot pause the others.
func TestAgentsArePaused(t *testing.T) {
	t.Parallel()
	s := start(t)
	type pause struct {
		At *time.Time `json:"paused_at"`
		By *string    `json:"paused_by"`
	}
	by := "key:" + s.Key[4:12]
	for _, at := range []string{"/api/v1/workspaces/demo", "/api/v1/admin"} {
		var p pause
		if s.must(t, "POST "+at+"/pause", "", &p); p.At == nil || p.By == nil || *p.By != by {
			t.Errorf("%s is paused as %+v", at, p)
		}
		var w pause
		if s.must(t, "GET /api/v1/workspaces/demo", "", &w); at == "/api/v1/workspaces/demo" && (w.By == nil || *w.By != by) {
			t.Errorf("the workspace is %+v", w)
		}
		p = pause{}
		if s.must(t, "POST "+at+"/resume", "", &p); p.At != nil || p.By != nil {
			t.Errorf("%s is resumed as %+v", at, p)
		}
	}
	theirs := []string{"Authorization", "Bearer " + s.Issue(t, s.Workspace, apikey.Admin)}
	s.refused(t, "INSUFFICIENT_SCOPE", "POST /api/v1/admin/pause", "", theirs...)
	s.must(t, "POST pause", "", nil, theirs...)
	s.refused(t, "INSUFFICIENT_SCOPE", "POST resume", "", "Authorization", "Bearer "+s.Issue(t, s.Workspace, apikey.ConfigWrite))
	if text := s.must(t, "GET admin-log?object=workspaces&limit=1", "", nil).text; !strings.Contains(text,
		`"paused_by":"key:`+theirs[1][11:19]) {
		t.Errorf("the log is %s", text)
	}
}
