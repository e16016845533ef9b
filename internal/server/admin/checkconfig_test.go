package admin_test

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/parley-server/parley/internal/egress"
	"github.com/parley-server/parley/internal/server/admin"
	"github.com/parley-server/parley/internal/store/apikey"
	"github.com/parley-server/parley/internal/store/vault"
	"github.com/parley-server/parley/internal/testing/apitest"
	"github.com/parley-server/parley/internal/testing/egresstest"
	"github.com/parley-server/parley/internal/testing/wait"
)

// TestConfigurationIsCheckedWithoutAChange checks a list in which changes depend on each other, fail,
// need another scope or are none: each has its own result, and nothing changes.
func TestConfigurationIsCheckedWithoutAChange(t *testing.T) {
	t.Parallel()
	s := start(t)
	changes := []struct{ change, code string }{
		{`{"method":"POST","path":"/agents","body":{"name":"support"}}`, ""},
		{`{"method":"PUT","path":"/agents/support","body":{"instructions":"Be kind."}}`, ""}, // after the first
		{`{"method":"POST","path":"/agents","body":{"name":"support"}}`, "INVALID_REQUEST"},
		{`{"method":"PUT","path":"/tools/b%61sh/rule","body":{"rule":"deny"}}`, ""},
		{`{"method":"PUT","path":"/tools/bsh/rule","body":{"rule":"deny"}}`, "OBJECT_NOT_FOUND"},
		{`{"method":"PUT","path":"/documents/content?path=wiki%2Fa.md","body":{"content":"# A"}}`, ""},
		{`{"method":"PUT","path":"/documents/content?path=..","body":{"content":"x"}}`, "INVALID_REQUEST"},
		{`{"method":"PATCH","path":"","body":{"name":"Other"}}`, "INSUFFICIENT_SCOPE"},
		{`{"method":"POST","path":"/keys","body":{"name":"k","scopes":["chat"]}}`, "NOT_FOUND"},
		{`{"method":"PUT","path":"/tools/bash/rule","body":{"rule":"deny","x":1}}`, "INVALID_REQUEST"},
		{`{"method":"PUT","path":"/tools/bash/rule"}`, "INVALID_JSON"},
		{`{"method":"PUT","path":"/egress","body":{"public":false,"hosts":["a.example"]}}`, ""},
	}
	list, want := make([]string, len(changes)), ""
	for i, c := range changes {
		list[i] = c.change
		if c.code != "" {
			want += fmt.Sprintf("%d %s\n", i, c.code)
		}
	}
	count := func() (n int) {
		if err := s.Pool.QueryRow(t.Context(), `SELECT count(*) FROM admin_log`).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	s.Key = s.Issue(t, s.Workspace, apikey.ConfigWrite, apikey.ToolsRead)
	before := count()
	var found struct {
		Checked  int
		Rejected []struct {
			Change int
			Error  struct{ Code, Message string }
		}
	}
	s.must(t, "POST config/check", `{"changes":[`+strings.Join(list, ",")+`]}`, &found)
	got := ""
	for _, r := range found.Rejected {
		got += fmt.Sprintf("%d %s\n", r.Change, r.Error.Code)
		if r.Error.Message == "" {
			t.Errorf("change %d has no message", r.Change)
		}
	}
	if got != want || found.Checked != len(changes) || count() != before {
		t.Errorf("%d checked, %d changes; rejected:\n%swant:\n%s", found.Checked, count()-before, got, want)
	}
	for _, wrong := range []string{`{}`, `{"changes":{}}`, `{"changes":[{"verb":"PUT"}]}`} {
		s.refused(t, "INVALID_REQUEST", "POST config/check", wrong)
	}
}

// TestCheckLeavesOutServersOfChangedSecrets checks the addition of a server that accepts a secret only
// after an earlier change of the same list: neither it nor what needs its tools is rejected.
func TestCheckLeavesOutServersOfChangedSecrets(t *testing.T) {
	t.Parallel()
	crm := mcp.NewServer(&mcp.Implementation{Name: "crm", Version: "1"}, nil)
	mcp.AddTool(crm, &mcp.Tool{Name: "find", Description: "Find a customer."}, func(context.Context, *mcp.CallToolRequest,
		customer) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{}, nil, nil
	})
	open := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server {
		return crm
	}, &mcp.StreamableHTTPOptions{DisableLocalhostProtection: true})
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer token-4711-value" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		open.ServeHTTP(w, r)
	})
	authority := egresstest.NewAuthority(t)
	allowed := []string{"crm.example:443=" + authority.Site(t, handler, "crm.example")}
	s := &service{Service: apitest.New(t, apitest.Options{Egress: egress.Config{Roots: authority.Roots(), Allow: allowed}})}
	srv := s.Server(t, nil)
	s.Serve(t, srv.NewRouter(admin.New(srv, s.Administration())))
	s.client = &http.Client{Transport: s.Checked(t)}
	r := vault.Registration{Name: "CRM_TOKEN", Hosts: []string{"other.example"}, Value: vault.NewValue([]byte("token-4711-value"))}
	if _, err := s.Vault.Register(t.Context(), s.Workspace.ID, r, "test"); err != nil {
		t.Fatal(err)
	}
	const (
		hosts  = `{"allowed_hosts":["crm.example"]}`
		crmAdd = `{"name":"crm","url":"https://crm.example/mcp","headers":{"Authorization":"Bearer ${CRM_TOKEN}"}}`
		noAdd  = `{"name":"erp","url":"https://crm.example/mcp","headers":{"Authorization":"Bearer ${NONE}"}}`
	)
	check := func(changes ...string) string {
		var found struct {
			Rejected  []struct{ Change int }
			Unchecked []int
		}
		s.must(t, "POST config/check", `{"changes":[`+strings.Join(changes, ",")+`]}`, &found)
		return fmt.Sprint(found.Rejected, found.Unchecked)
	}
	put, add := `{"method":"PUT","path":"/credentials/CRM_TOKEN","body":`+hosts+`}`,
		`{"method":"POST","path":"/tool-servers","body":`+crmAdd+`}`
	got := check(put, add, `{"method":"PATCH","path":"/tool-servers/crm/tools/find","body":{"label":"read_only"}}`,
		`{"method":"PUT","path":"/tools/crm__find/rule","body":{"rule":"deny"}}`,
		`{"method":"PUT","path":"/tools/bsh/rule","body":{"rule":"deny"}}`,
		`{"method":"PUT","path":"/credentials/NONE","body":`+hosts+`}`, `{"method":"POST","path":"/tool-servers","body":`+noAdd+`}`, add)
	if want := "[{4} {6} {7}] [1 2 3]"; got != want {
		t.Errorf("rejected and unchecked: %s; want %s", got, want)
	}
	if got := check(add, put); got != "[{0}] []" {
		t.Errorf("before the change of the secret, rejected and unchecked: %s", got)
	}
	s.must(t, "PUT credentials/CRM_TOKEN", hosts, nil)
	s.must(t, "POST tool-servers", crmAdd, nil)
}

// TestCheckEndsWithItsClient ends the request of a check that waits for a lock.
func TestCheckEndsWithItsClient(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.must(t, "PUT tools/bash/rule", `{"rule":"ask"}`, nil)
	tx, err := s.Pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(t.Context())) }()
	if _, err := tx.Exec(t.Context(), "SELECT FROM tool_rules FOR UPDATE"); err != nil {
		t.Fatal(err)
	}
	waiting := func() (n int) {
		const waiters = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
		if err := tx.QueryRow(t.Context(), waiters, pgx.QueryExecModeExec).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	body := `{"changes":[{"method":"PUT","path":"/tools/bash/rule","body":{"rule":"deny"}}]}`
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL+"/api/v1/workspaces/demo/config/check", bytes.NewBufferString(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+s.Key)
	r.Header.Set("Content-Type", "application/json")
	done := make(chan error, 1)
	go func() {
		res, err := http.DefaultClient.Do(r)
		if err == nil {
			err = res.Body.Close()
		}
		done <- err
	}()
	wait.For(t, "a check that waits for the lock", func() bool { return waiting() == 1 })
	leave()
	wait.Receive(t, "the end of the request", done)
	wait.For(t, "the end of the check", func() bool { return waiting() == 0 })
}
