package sso

import (
	"testing"

	"github.com/parley-server/parley/internal/store/apikey"
)

// TestRulesGiveTheStrongestRole parses rules and asks for the roles of groups.
func TestRulesGiveTheStrongestRole(t *testing.T) {
	t.Parallel()
	rules, err := ParseRules([]string{"admins=owner@*", " support=approver@demo ", "support=viewer@*", "it=admin", "cn=x=editor@demo", ""})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		workspace, group string
		want             apikey.Role
	}{
		{"demo", "admins", apikey.Owner}, {"other", "admins", apikey.Owner}, {"demo", "support", apikey.Approver},
		{"other", "support", apikey.Viewer},
		{"demo", "cn=x", apikey.Editor}, {"demo", "it", ""}, {"demo", "Admins", ""},
	} {
		if got := rules.RoleIn(c.workspace, []string{"none", c.group}); got != c.want {
			t.Errorf("%s in %s: %q, want %q", c.group, c.workspace, got, c.want)
		}
	}
	if !rules.GrantsAdmin() || !rules.Admin([]string{"it"}) || rules.Admin([]string{"admins", "admin"}) {
		t.Error("the administrators are not those of the group it")
	}
	for _, text := range []string{"admins", "admins=", "=owner@*", "admins=owner", "admins=owner@", "admins=boss@*", "admins=admin@*", "*"} {
		if _, err := ParseRules([]string{text}); err == nil {
			t.Errorf("%q is a rule", text)
		}
	}
}
