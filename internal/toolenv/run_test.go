package toolenv_test

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/testing/wait"
	"github.com/parley-server/parley/internal/tool"
	"github.com/parley-server/parley/internal/toolenv"
)

const value = "s3cr3t-value-of-the-test"

func TestFolderOutlivesTheRun(t *testing.T) {
	t.Parallel()
	w := newWorld(t).contained(t)
	first := w.begin(t, w.turn(t))
	if err := first.Write(t.Context(), tool.Call{}, "out/a.txt", []byte("from write\n")); err != nil {
		t.Fatal(err)
	}
	if got := bash(t, first, "cat out/a.txt; echo more >> out/a.txt && mkdir -m 700 b && cp out/a.txt b/ && ln -s b/a.txt l; id -u; "+
		"pwd; ls -la /workspace | wc -l"); !strings.HasPrefix(got, "from write\n1000\n/workspace\n") {
		t.Errorf("%q", got)
	}
	first.Close()

	second := w.begin(t, w.turn(t))
	if text, err := second.Text(t.Context(), "b/a.txt"); err != nil || text != "from write\nmore\n" {
		t.Errorf("%q, %v", text, err)
	}
	if text, err := second.Text(t.Context(), ""); err != nil || text != "b/\nl\nout/\n" {
		t.Errorf("%q, %v", text, err)
	}
	if got := bash(t, second, "cat l; rm -r b; echo x > l; ls"); got != "from write\nmore\nl\nout\n" && !strings.Contains(got,
		"No such file") {
		t.Errorf("%q", got)
	}
	f, err := second.Open(t.Context(), "/workspace/out/a.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if got, err := io.ReadAll(f); err != nil || string(got) != "from write\nmore\n" {
		t.Errorf("%q, %v", got, err)
	}
}

// TestOlderAttemptSavesNothing lets an attempt continue that has lost its turn to another.
func TestOlderAttemptSavesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t).contained(t)
	old := w.begin(t, w.turn(t))
	bash(t, old, "echo old > file")
	young := w.begin(t, w.turn(t))
	bash(t, young, "echo young > file")
	if _, _, err := old.Bash(t.Context(), tool.Call{}, "echo zombie > file", 0, io.Discard); err == nil {
		t.Error("the older attempt has saved")
	}
	if text, err := w.begin(t, w.turn(t)).Text(t.Context(), "file"); err != nil || text != "young\n" {
		t.Errorf("%q, %v", text, err)
	}
}

func TestAttachmentsAreThereAndReadOnly(t *testing.T) {
	t.Parallel()
	w := newWorld(t).contained(t)
	turn := w.turn(t)
	for i, content := range []string{"first", "second"} {
		if _, err := w.files.Produce(t.Context(), w.workspace, w.session, turn.Turn, fmt.Sprint(i), "data.csv", "text/csv",
			strings.NewReader(content)); err != nil {
			t.Fatal(err)
		}
		if _, err := w.pool.Exec(t.Context(),
			`INSERT INTO turn_files (turn_id, file_id, workspace_id, n) SELECT $1, id, workspace_id, $2 FROM files WHERE `+
				`call_id = $3`, turn.Turn, i, fmt.Sprint(i)); err != nil {
			t.Fatal(err)
		}
	}
	run := w.begin(t, turn)
	got := bash(t, run,
		"cat attachments/data.csv attachments/data-2.csv; echo; touch attachments/new attachments/data.csv 2>&1; ls attachments")
	if !strings.HasPrefix(got, "firstsecond\n") || strings.Count(got, "Read-only file system") != 2 ||
		!strings.HasSuffix(got, "data-2.csv\ndata.csv\n") {
		t.Errorf("%q", got)
	}
	if text, err := run.Text(t.Context(), "attachments/data.csv"); err != nil || text != "first" {
		t.Errorf("%q, %v", text, err)
	}
	if err := run.Write(t.Context(), tool.Call{}, "attachments/x", nil); !strings.Contains(refused(t, err), "read-only") {
		t.Errorf("%v", err)
	}
	// They are not part of the folder: a later turn has them, and no copy is stored.
	var kept int
	if err := w.pool.QueryRow(t.Context(), `SELECT count(*) FROM work_files`).Scan(&kept); err != nil || kept != 0 {
		t.Errorf("%d names are kept, %v", kept, err)
	}
	if got := bash(t, w.begin(t, w.turn(t)), "cat attachments/data-2.csv"); got != "second" {
		t.Errorf("%q", got)
	}
}

// TestWhatCommandsLeaveBehindHarmsNobody covers the tools that read a folder outside the sandbox.
func TestWhatCommandsLeaveBehindHarmsNobody(t *testing.T) {
	t.Parallel()
	w := newWorld(t).contained(t)
	run := w.begin(t, w.turn(t))
	secret := t.TempDir() + "/host"
	if err := os.WriteFile(secret, []byte("of the host"), 0o644); err != nil {
		t.Fatal(err)
	}
	got := bash(t, run, fmt.Sprintf("ln -s %s absolute; ln -s / root; ln -s ../../../../../../../../..%s up; ln -s loop loop; "+
		"mkfifo pipe; ln -s pipe topipe; ln -s /etc dir; mkdir -p closed .git; chmod 0 closed; ln -s .git docs; "+
		"printf 'a\\0b' > binary; truncate -s 50G sparse; ls | wc -l", secret, secret))
	if !strings.Contains(got, "pipe\": a pipe") {
		t.Errorf("%q", got)
	}
	for _, name := range []string{"absolute", "root" + secret, "up", "loop", "pipe", "topipe", "dir/passwd", "../x", "/etc/passwd",
		"binary", "nothing", "a\x00b", strings.Repeat("x/", 3000)} {
		if text, err := run.Text(t.Context(), name); refused(t, err) == "" {
			t.Errorf("%q can be read: %q", name, text)
		}
		if name == "binary" {
			continue
		}
		if f, err := run.Open(t.Context(), name); refused(t, err) == "" {
			f.Close()
			t.Errorf("%q can be opened", name)
		}
	}
	for _, name := range []string{"absolute", "up", "pipe", "loop"} {
		if err := run.Write(t.Context(), tool.Call{}, name, []byte("new")); err != nil {
			t.Errorf("write %s: %v", name, err)
		}
		if text, err := run.Text(t.Context(), name); err != nil || text != "new" {
			t.Errorf("%s: %q, %v", name, text, err)
		}
	}
	for _, name := range []string{"root/tmp/x", "dir/x", "docs/config", "docs/a/b", "../x", "closed", "binary/x", ".", ""} {
		if err := run.Write(t.Context(), tool.Call{}, name, []byte("new")); refused(t, err) == "" {
			t.Errorf("%q can be written", name)
		}
	}
	if left, err := os.ReadFile(secret); err != nil || string(left) != "of the host" {
		t.Errorf("%q, %v", left, err)
	}
}

func TestWithoutASandboxEverythingElseWorks(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.register(t, "API_TOKEN", value)
	run := w.begin(t, w.turn(t, "API_TOKEN"))
	if !strings.HasPrefix(run.Unavailable(), "sandbox_unavailable: ") {
		t.Errorf("%q", run.Unavailable())
	}
	if _, _, err := run.Bash(t.Context(), tool.Call{}, "true", 0, io.Discard); !strings.HasPrefix(refused(t, err), "sandbox_unavailable: ") {
		t.Errorf("%v", err)
	}
	if err := run.Write(t.Context(), tool.Call{}, "a/b", []byte("x")); err != nil {
		t.Error(err)
	}
	if got := fetchAttachment(t, run, "https://example.com/", "API_TOKEN"); got != "you sent Bearer [secret:API_TOKEN]" ||
		wait.Receive(t, "a request", w.heard) != "Bearer "+value {
		t.Errorf("%q", got)
	}
	run.Close()
	if text, err := w.begin(t, w.turn(t)).Text(t.Context(), "a/b"); err != nil || text != "x" {
		t.Errorf("%q, %v", text, err)
	}
}

func TestPlaceholdersBelongToATurn(t *testing.T) {
	t.Parallel()
	w := newWorld(t).contained(t)
	w.register(t, "API_TOKEN", value)
	w.register(t, "OTHER_KEY", "another-secret-value")
	w.register(t, "EMPTY_KEY", "")
	turn := w.turn(t, "API_TOKEN", "EMPTY_KEY")
	seen := map[string]bool{}
	for range 2 { // two attempts, on two replicas
		run := w.begin(t, turn)
		got := bash(t, run, `echo $API_TOKEN; test -z "$EMPTY_KEY$OTHER_KEY" && curl -sS -H "Authorization: Bearer $API_TOKEN" `+
			`https://example.com/ | tee file; cat file`)
		lines := strings.Split(got, "\n")
		if len(lines) != 4 || !strings.HasPrefix(lines[0], "ph_") || lines[1] != "you sent Bearer [secret:API_TOKEN]" ||
			lines[2] != lines[1] || wait.Receive(t, "a request", w.heard) != "Bearer "+value {
			t.Fatalf("%q", got)
		}
		seen[lines[0]] = true
		run.Close()
	}
	if len(seen) != 1 {
		t.Errorf("a turn's attempts have the placeholders %v", seen)
	}
	later := w.begin(t, w.turn(t, "API_TOKEN"))
	for stands := range seen {
		if got := bash(t, later, `test $API_TOKEN != `+stands+` && curl -sS -H "Authorization: Bearer `+stands+
			`" https://example.com/`); got != "you sent Bearer "+stands+"\n" || wait.Receive(t, "a request", w.heard) != "Bearer "+stands {
			t.Errorf("%q", got)
		}
	}
	for name, want := range map[string]string{"EMPTY_KEY": "has no value yet", "OTHER_KEY": `no credential "OTHER_KEY". It has: API_TOKEN.`,
		"NO_KEY": "no credential"} {
		if got := fetchAttachment(t, w.begin(t, turn), "https://example.com/", name); !strings.Contains(got, want) {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// TestProgramsWithoutAProxyUseCredentials runs curl without proxy settings.
func TestProgramsWithoutAProxyUseCredentials(t *testing.T) {
	t.Parallel()
	w := newWorld(t).contained(t)
	w.register(t, "API_TOKEN", value)
	r := w.replica(t)
	run := r.Open(w.turn(t, "API_TOKEN"))
	defer run.Close()
	got := bash(t, run, `curl -sS --noproxy '*' -H "Authorization: Bearer $API_TOKEN" https://example.com/ && curl -sS --noproxy '*' `+
		`https://elsewhere.example/`)
	if want := "you sent Bearer [secret:API_TOKEN]\ncurl: (6)"; !strings.HasPrefix(got, want) || wait.Receive(t, "a request",
		w.heard) != "Bearer "+value {
		t.Errorf("%q", got)
	}
	list, err := r.Requests(t.Context(), w.workspace, &w.session, 10)
	if err != nil || len(list) != 2 || list[1].Method != "GET" || list[1].Credentials[0] != "API_TOKEN@1" ||
		list[0].Host != "elsewhere.example" || list[0].Decision != "refused_host" {
		t.Errorf("%+v, %v", list, err)
	}
}

// TestChangedCredentialSendsNothing changes the host of a credential in the database, bypassing the
// service.
func TestChangedCredentialSendsNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t).contained(t)
	w.register(t, "API_TOKEN", value)
	if _, err := w.pool.Exec(t.Context(), `UPDATE credentials SET allowed_hosts = '{evil.example,example.com}'`); err != nil {
		t.Fatal(err)
	}
	run := w.begin(t, w.turn(t, "API_TOKEN"))
	var out bytes.Buffer
	_, _, err := run.Bash(t.Context(), tool.Call{}, "curl https://example.com/", 0, &out)
	if why := refused(t, err); !strings.Contains(why, "cannot be opened") || out.Len() > 0 {
		t.Errorf("%q, %q", why, out.String())
	}
	if got := fetchAttachment(t, run, "https://example.com/", "API_TOKEN"); !strings.Contains(got, "cannot be opened") {
		t.Errorf("%q", got)
	}
	// A run that does not use the credential is not affected, and other values stay hidden.
	w.register(t, "OTHER_KEY", "another-secret-value")
	w.register(t, "THIRD_KEY", "the-third-secret-value")
	third := w.begin(t, w.turn(t, "THIRD_KEY"))
	if got := fetchAttachment(t, third, "https://example.com/another-secret-value",
		"THIRD_KEY"); got != "you sent Bearer [secret:THIRD_KEY] to /[secret:OTHER_KEY]" {
		t.Errorf("%q", got)
	}
	if got := fetchAttachment(t, w.begin(t, w.turn(t)), "https://example.com/", ""); !strings.Contains(got,
		"parley egress create example.com") {
		t.Errorf("%q", got)
	}
}

func TestRequestsAreOnRecord(t *testing.T) {
	t.Parallel()
	w := newWorld(t).contained(t)
	w.register(t, "API_TOKEN", value)
	r := w.replica(t)
	run := r.Open(w.turn(t, "API_TOKEN"))
	defer run.Close()
	bash(t, run, `curl -s -H "Authorization: Bearer $API_TOKEN" "https://example.com/one?`+value+
		`=$API_TOKEN"; curl -s https://elsewhere.example/two`)
	fetchAttachment(t, run, "https://example.com/three", "")
	list, err := r.Requests(t.Context(), w.workspace, &w.session, 10)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, q := range list {
		status := 0
		if q.Status != nil {
			status = *q.Status
		}
		got = append(got, fmt.Sprintf("%s %s://%s%s %v %s %d %s", q.Method, q.Scheme, q.Host, q.Path, q.Credentials, q.Decision,
			status, q.CallID))
	}
	if len(list) != 3 || !strings.HasPrefix(got[0], "GET https://example.com/three [] ") || !strings.HasSuffix(got[0], " 200 c") ||
		!strings.Contains(got[1], "elsewhere.example") || !strings.HasPrefix(got[2], "GET https://example.com/one [API_TOKEN@1] ") {
		t.Errorf("%q", got)
	}
	if foreign, err := r.Requests(t.Context(), uuid.New(), &w.session, 10); err != nil || len(foreign) != 0 {
		t.Errorf("another workspace sees %d, %v", len(foreign), err)
	}
}

// TestRemovedCredentialsAreNotSent removes a credential while a run has it.
func TestRemovedCredentialsAreNotSent(t *testing.T) {
	t.Parallel()
	w := newWorld(t).contained(t)
	w.register(t, "API_TOKEN", value)
	run := w.begin(t, w.turn(t, "API_TOKEN"))
	const curl = `curl -sS -H "Authorization: Bearer $API_TOKEN" https://example.com/`
	if got := bash(t, run, curl); got != "you sent Bearer [secret:API_TOKEN]\n" || wait.Receive(t, "a request", w.heard) != "Bearer "+value {
		t.Errorf("%q", got)
	}
	if err := w.vault.Remove(t.Context(), w.workspace, "API_TOKEN", "test"); err != nil {
		t.Fatal(err)
	}
	const why = "An administrator has removed API_TOKEN since this turn began."
	if got := bash(t, run, curl); !strings.Contains(got, why) {
		t.Errorf("%q", got)
	}
	if got := fetchAttachment(t, run, "https://example.com/", "API_TOKEN"); got != why {
		t.Errorf("%q", got)
	}
	if len(w.heard) > 0 {
		t.Errorf("it was sent: %s", wait.Receive(t, "a request", w.heard))
	}
}

func TestPolicy(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.replica(t)
	set := toolenv.Policy{Hosts: []string{"C.example:8443", "*.a.example", "c.example:8443"}, Public: true}
	if _, err := r.SetPolicy(t.Context(), w.workspace, set, nil); err != nil {
		t.Fatal(err)
	}
	for _, host := range []string{"", "*", "*.localhost", "127.0.0.1", "https://a.example", "a.example/x"} {
		if _, err := r.SetPolicy(t.Context(), w.workspace, toolenv.Policy{Hosts: []string{host}}, nil); err == nil {
			t.Errorf("%q is accepted", host)
		}
	}
	p, err := r.Policy(t.Context(), w.workspace)
	if p.UpdatedAt.IsZero() {
		t.Error("the policy has no time of its change")
	}
	p.UpdatedAt = time.Time{}
	if want := (toolenv.Policy{Hosts: []string{"*.a.example", "c.example:8443"}, Public: true}); err != nil ||
		fmt.Sprint(p) != fmt.Sprint(want) {
		t.Errorf("%+v, %v", p, err)
	}
	if other, err := r.Policy(t.Context(), uuid.New()); err != nil || len(other.Hosts) > 0 || other.Public {
		t.Errorf("%+v, %v", other, err)
	}
}
