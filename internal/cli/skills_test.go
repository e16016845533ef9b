package cli_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-server/parley/internal/testing/dbtest"
	"github.com/parley-server/parley/internal/testing/wait"
)

// workshop is a shell with a database and a workspace, without a server.
func workshop(t *testing.T) shell {
	t.Helper()
	sh := shell{t: t, dir: t.TempDir(), environ: []string{"DATABASE_URL=" + dbtest.DSN(t), "USER=anna"}}
	sh.must("workspace", "create", "test")
	return sh
}

// write puts a file below the shell's directory.
func (s shell) write(name, content string) {
	s.t.Helper()
	file := filepath.Join(s.dir, name)
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		s.t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

func (s shell) read(name string) string {
	s.t.Helper()
	content, err := os.ReadFile(filepath.Join(s.dir, name))
	if err != nil {
		s.t.Fatal(err)
	}
	return string(content)
}

const refund = `---
name: Refund_Order
description: "Refunds an order: <all> of it."
license: Apache-2.0
allowed-tools: [wiki_read]
metadata:
  author: anna  # who knows
interface:
  inputs:
    order: {type: string, required: true}
    amount: {type: number}
---

# Refund

Do it.
`

func TestSkillsFromBirthToDeath(t *testing.T) {
	t.Parallel()
	sh := workshop(t)
	sh.must("skills", "new", "monthly_report", "--in", "skills")
	if _, errs, code := sh.run("skills", "new", "monthly_report", "--in", "skills"); code != 2 || !strings.Contains(errs, "already") {
		t.Errorf("made twice: exit code %d: %s", code, errs)
	}
	sh.write("skills/refund/SKILL.md", refund)
	sh.write("skills/refund/scripts/refund.py", "print()")
	sh.write("skills/README.md", "Our skills.")
	if out := sh.must("skills", "lint", "skills"); out != "" {
		t.Errorf("lint: %s", out)
	}
	_, errs, code := sh.run("skills", "push", "skills")
	if code != 0 || !strings.Contains(errs, "Pushed monthly_report, version 1, active.") ||
		!strings.Contains(errs, "Only its SKILL.md was pushed, not scripts.") {
		t.Fatalf("push: exit code %d: %s", code, errs)
	}
	if _, errs, _ := sh.run("skills", "push", "skills/refund"); !strings.Contains(errs, "Unchanged: Refund_Order, version 1, active.") {
		t.Errorf("push again: %s", errs)
	}

	sh.must("skills", "pull", "--to", "copy")
	if diff := cmp.Diff(refund, sh.read("copy/Refund_Order/SKILL.md")); diff != "" {
		t.Errorf("pulled another document:\n%s", diff)
	}
	sh.write("copy/Refund_Order/SKILL.md", refund+"\nTwice.\n")
	if _, errs, code := sh.run("skills", "pull", "refund-order", "--to", "copy"); code != 2 || !strings.Contains(errs, "--force") {
		t.Errorf("pull over a change: exit code %d: %s", code, errs)
	}
	if _, errs, _ := sh.run("skills", "push", "copy", "--draft"); !strings.Contains(errs, "Pushed Refund_Order, version 2, a draft") ||
		!strings.Contains(errs, "Unchanged: monthly_report") {
		t.Errorf("push a draft: %s", errs)
	}
	if out := sh.must("skills", "show", "REFUND-ORDER"); !strings.HasSuffix(out, "\nTwice.\n") {
		t.Errorf("show: %s", out)
	}
	if out := sh.must("skills", "show", "refund-order", "--version", "1"); out != refund {
		t.Errorf("show version 1: %s", out)
	}
	if out := sh.must("skills", "list"); !strings.Contains(out, "1 (of 2)") || !strings.Contains(out, "order* amount") {
		t.Errorf("list: %s", out)
	}
	sh.must("skills", "publish", "refund_order")
	sh.must("skills", "archive", "refund_order")

	var history struct {
		Data []struct {
			Action, Actor string
			Version       *int
		}
	}
	if err := json.Unmarshal([]byte(sh.must("skills", "show", "refund-order", "--history", "--json")), &history); err != nil {
		t.Fatal(err)
	}
	var told []string
	for _, h := range history.Data {
		told = append(told, h.Action+" "+h.Actor)
	}
	if diff := cmp.Diff([]string{"push cli:anna", "publish cli:anna", "push cli:anna", "publish cli:anna", "archive cli:anna"},
		told); diff != "" {
		t.Error(diff)
	}
	if out := sh.must("skills", "show", "refund-order", "--history"); !strings.Contains(out, "archive") || !strings.Contains(out, "cli:anna") {
		t.Errorf("history: %s", out)
	}
	var list struct{ Data []map[string]any }
	if err := json.Unmarshal([]byte(sh.must("skills", "list", "--json")), &list); err != nil || len(list.Data) != 2 ||
		list.Data[1]["status"] != "archived" {
		t.Errorf("list --json: %v, %v", list, err)
	}
	var one struct{ Data map[string]any }
	if err := json.Unmarshal([]byte(sh.must("skills", "show", "refund-order", "--version", "1", "--json")), &one); err != nil ||
		one.Data["document"] != refund {
		t.Errorf("show --json: %v, %v", one, err)
	}
	sh.must("skills", "pull", "--to", "rest")
	if _, err := os.Stat(filepath.Join(sh.dir, "rest", "Refund_Order")); err == nil {
		t.Error("an archived skill was pulled, without being named")
	}
}

func TestLintTellsEveryProblemWithItsPlace(t *testing.T) {
	t.Parallel()
	sh := workshop(t)
	sh.write("a/one/SKILL.md", "---\nname: one!\ndescription: x\ninterface:\n  inputs:\n    n: {type: int}\n---\nBody\n")
	sh.write("a/two/SKILL.md", "---\nname: T-wo\ndescription: x\n---\nBody\n")
	sh.write("b/SKILL.md", "---\nname: t_wo\ndescription: x\n---\nBody\n")
	out, _, code := sh.run("skills", "lint", "a", "b")
	lines := strings.Split(strings.TrimSpace(out), "\n")
	want := []string{"a/one/SKILL.md:2: A name is", "a/one/SKILL.md:6: Unknown type \"int\"",
		"b/SKILL.md:2: The name t_wo is that of a/two/SKILL.md"}
	if code != 2 || len(lines) != len(want) {
		t.Fatalf("exit code %d: %s", code, out)
	}
	for i, line := range lines {
		if !strings.HasPrefix(line, want[i]) {
			t.Errorf("%s\nis not %s", line, want[i])
		}
	}
	_, errs, code := sh.run("skills", "push", "a")
	if code != 2 || !strings.Contains(errs, "Nothing was pushed") || !strings.Contains(errs, "SKILL.md:6:") {
		t.Errorf("push: exit code %d: %s", code, errs)
	}
	if out, errs, _ := sh.run("skills", "list"); out != "" || !strings.Contains(errs, "parley skills create") {
		t.Errorf("a refused push has stored %s%s", out, errs)
	}
	sh.must("skills", "push", "b")
	if _, errs, code := sh.run("skills", "push", "a/two"); code != 2 || !strings.Contains(errs, `There is a skill "t_wo" already`) {
		t.Errorf("another spelling: exit code %d: %s", code, errs)
	}
	for line, want := range map[string]string{
		"skills lint nowhere":                    "cannot be read",
		"skills lint a b c":                      "cannot be read",
		"skills push .parley":                    "cannot be read",
		"skills new a--b":                        "Invalid name of a skill",
		"skills new ../x":                        "Invalid name of a skill",
		"skills show two":                        `No skill named "two". Did you mean "t_wo"?`,
		"skills publish nope":                    "No skill named",
		"skills archive nope":                    "No skill named",
		"skills pull nope":                       "No skill named",
		"skills show t_wo --history --version 1": "none of the others can be",
		"skills publish t_wo --version 7":        "has the versions 1 to 1",
	} {
		if _, errs, code := sh.run(strings.Fields(line)...); code != 2 || !strings.Contains(errs, want) {
			t.Errorf("parley %s: exit code %d: %s", line, code, errs)
		}
	}
	sh.write("empty/README.md", "")
	if _, errs, code := sh.run("skills", "lint", "empty"); code != 2 || !strings.Contains(errs, "empty contains no skill") {
		t.Errorf("exit code %d: %s", code, errs)
	}
}

// TestASkillIsSentWithItsInputs checks the request that a server receives.
func TestASkillIsSentWithItsInputs(t *testing.T) {
	t.Parallel()
	bodies := make(chan string, 1)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		bodies <- string(body)
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusBadRequest)
		_,
			_ = io.WriteString(w, `{"error":{"type":"invalid_request_error","code":"INVALID_SKILL_INPUT","message":"month is required. (and 1 more)",
			"violations":[{"param":"/input/month","rule":"required","message":"month is required."},{"param":"/input/x","rule":"unknown","message":"Unknown input \"x\"."}]}}`)
	}))
	t.Cleanup(srv.Close)
	sh := shell{t: t, dir: t.TempDir(), environ: []string{"PARLEY_URL=" + srv.URL, "PARLEY_WORKSPACE=test", "PARLEY_API_KEY=x"}}
	sh.write("in.json", `{"n": 12345678901234567890.10, "team": "sales", "deep": {"a": [1, null]}}`)
	for _, c := range []struct {
		stdin io.Reader
		args  []string
		want  string
	}{
		{nil, []string{"skills", "run", "report"}, `{"skill":"report"}`},
		{nil, []string{"send", "--skill", "report", "--input", "month=2026-10", "--input", "x=a=b:=c"},
			`{"skill":"report","input":{"month":"2026-10","x":"a=b:=c"}}`},
		{nil, []string{"skills", "run", "report", "--input", "n:=3.0", "--input", `list:=["a", 1]`, "--input", "empty=", "--input",
			"team=7"}, `{"skill":"report","input":{"empty":"","list":["a",1],"n":3.0,"team":"7"}}`},
		{nil, []string{"skills", "run", "report", "--input-json", "@in.json", "--input", "team=support"},
			`{"skill":"report","input":{"deep":{"a":[1,null]},"n":12345678901234567890.10,"team":"support"}}`},
		{strings.NewReader(`{"a":1}`), []string{"skills", "run", "report", "--input-json", "@-", "--session", "s"},
			`{"skill":"report","input":{"a":1},"session_id":"s"}`},
		{strings.NewReader("not for the skill"), []string{"send", "--skill", "report", "--input-json", "{}"}, `{"skill":"report"}`},
	} {
		_, errs, code := sh.pipe(c.stdin, c.args...)
		if got := wait.Receive(t, "a callback", bodies); got != c.want {
			t.Errorf("%q sends\n%s\nnot\n%s", c.args, got, c.want)
		}
		if code != 2 || !strings.Contains(errs, "input/month: month is required.") || !strings.Contains(errs, "input/x: Unknown input") {
			t.Errorf("%q: exit code %d: %s", c.args, code, errs)
		}
	}
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"send", "--skill", "report", "hello"}, "not both"},
		{[]string{"send", "--input", "a=b", "hello"}, "need --skill"},
		{[]string{"skills", "run", "report", "--input", "hunter2"}, "It takes name=text"},
		{[]string{"skills", "run", "report", "--input", "=hunter2"}, "It takes name=text"},
		{[]string{"skills", "run", "report", "--input", "a:=hunter2"}, "The value of --input a is not JSON"},
		{[]string{"skills", "run", "report", "--input", "a=1", "--input", "a:=2"}, "given twice"},
		{[]string{"skills", "run", "report", "--input-json", "hunter2"}, "not a JSON object"},
		{[]string{"skills", "run", "report", "--input-json", "null"}, "not a JSON object"},
		{[]string{"skills", "run", "report", "--input-json", "@nowhere.json"}, "cannot be read"},
		{[]string{"skills", "run"}, "NAME is missing"},
	} {
		_, errs, code := sh.run(c.args...)
		if code != 2 || !strings.Contains(errs, c.want) || strings.Contains(errs, "hunter2") {
			t.Errorf("%q: exit code %d: %s", c.args, code, errs)
		}
	}
}
