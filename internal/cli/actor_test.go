package cli_test

import (
	"strings"
	"testing"
)

// TestActorIsOnRecord checks that every command that decides an approval records the approver
// behind the key, and that list and show print the name.
func TestActorIsOnRecord(t *testing.T) {
	t.Parallel()
	sh, _ := asking(t)
	ask := func(message string) string {
		_, errs, _ := sh.run("send", message)
		return timeLeft(t, errs).ApprovalID.String()
	}
	var ids []string
	for _, c := range []struct{ message, command string }{
		{writes, "approvals allow"}, {writes, "approvals deny"}, {wants, "secret skip"}, {wants, "secret provide"},
	} {
		id := ask(c.message)
		ids = append(ids, id)
		_, errs, code := sh.pipe(strings.NewReader("hunter2-hunter2"), append(strings.Fields(c.command), id, "--actor", "anna@example.com")...)
		if code != 0 {
			t.Fatalf("%s: exit code %d, %s", c.command, code, errs)
		}
	}
	if _, errs, code := sh.run("send", "--approve", "never", "--actor", "anna@example.com", writes); code != 6 {
		t.Fatalf("exit code %d, %s", code, errs)
	}
	list := sh.must("approvals", "list", "--status", "all")
	if n := strings.Count(list, "anna@example.com with the key "); n != len(ids)+1 {
		t.Errorf("%d of %d decisions name the actor:\n%s", n, len(ids)+1, list)
	}
	for _, id := range ids {
		if got := sh.must("approvals", "show", id); !strings.Contains(got, " by anna@example.com with the key ") {
			t.Errorf("%s", got)
		}
	}
	if _, errs, code := sh.run("approvals", "allow", ask(writes), "--actor", strings.Repeat("x", 256)); code != 2 ||
		!strings.Contains(errs, "255") {
		t.Errorf("exit code %d, %s", code, errs)
	}
}

// TestWorkspaceRequiresAnotherApprover sets the rules for approvals and checks that they apply.
func TestWorkspaceRequiresAnotherApprover(t *testing.T) {
	t.Parallel()
	sh, _ := asking(t)
	sh.must("workspace", "update", "test", "--separate-approver", "--admin-patterns")
	if got := sh.must("workspace", "list"); !strings.Contains(got, "  yes  ") {
		t.Errorf("the list does not show the approval rules:\n%s", got)
	}
	if got := sh.must("workspace", "list", "--json"); !strings.Contains(got, `"separate_approver": true`) ||
		!strings.Contains(got, `"admin_patterns": true`) {
		t.Fatalf("%s", got)
	}
	sender := sh.scoped("chat")
	_, errs, _ := sender.run("send", writes)
	id := timeLeft(t, errs).ApprovalID.String()
	if _, errs, code := sender.run("approvals", "allow", id); code == 0 || !strings.Contains(errs, "wiki:write") {
		t.Errorf("a key without the scope: exit code %d, %s", code, errs)
	}
	_, errs, _ = sh.run("send", writes)
	mine := timeLeft(t, errs).ApprovalID.String()
	if _, errs, code := sh.run("approvals", "allow", mine); code != 4 || !strings.Contains(errs, "Use another key") {
		t.Errorf("the sender: exit code %d, %s", code, errs)
	}
	if _, errs, code := sh.run("approvals", "allow", id, "--pattern", "wiki_write(tea)"); code == 0 ||
		!strings.Contains(errs, "administrators") {
		t.Errorf("a pattern: exit code %d, %s", code, errs)
	}
	sh.must("approvals", "allow", id)
	sh.must("approvals", "deny", mine)
	sh.must("allowlist", "add", "wiki_write(tea)")
	sh.must("workspace", "update", "test", "--separate-approver=false", "--admin-patterns=false")
}
