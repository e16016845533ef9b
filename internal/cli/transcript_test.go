package cli_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/parley-server/parley/internal/testing/wait"
)

func TestASessionIsShownAndExported(t *testing.T) {
	t.Parallel()
	sh, _ := asking(t)
	sh.must("send", "--caller", "alice", "--approve", "pattern:wiki_write(tea)", "# Note\n"+writes)
	if _, _, code := sh.run("send", "--caller", "alice", "@call search {\"query\":\"tea\"}\n@say Half.\n@error model_error"); code != 1 {
		t.Fatalf("exit code %d", code)
	}
	var list struct {
		Data []struct {
			SessionID string `json:"session_id"`
		}
	}
	if err := json.Unmarshal([]byte(sh.must("sessions", "list", "--caller", "alice", "--json")), &list); err != nil {
		t.Fatal(err)
	}
	id := list.Data[0].SessionID

	page := sh.must("sessions", "show", id)
	for _, want := range []string{"User  20", "# Note\n", "Agent  20", "→ wiki_write write wiki page tea", "\n→ search for tea\n",
		"\nDone.\n", "builtin/guide", "\nHalf.\n(failed: model_error)\n"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q:\n%s", want, page)
		}
	}
	fork := strings.TrimSpace(sh.must("sessions", "fork", id))
	if got := sh.must("sessions", "show", fork); strings.Count(got, "  from "+id) != 4 {
		t.Errorf("the fork has\n%s", got)
	}
	if got := sh.must("sessions", "show", id, "--as-of", "0", "--json"); strings.Contains(got, `"message_id"`) {
		t.Errorf("before the first event: %s", got)
	}
	if _, errs, code := sh.run("sessions", "show", id, "--as-of", "0"); code != 0 || errs != "The session had no messages at event 0.\n" {
		t.Errorf("before the first event: exit code %d, %s", code, errs)
	}
	if got := sh.must("sessions", "show", id, "--json"); strings.Count(got, `"message_id"`) != 4 {
		t.Errorf("as JSON: %s", got)
	}

	if out, errs, code := sh.scoped("admin").run("sessions", "context", id, "--turn", "1"); code != 0 ||
		!strings.Contains(out, "\nsystem\n") || !strings.Contains(errs, "The hash matches the recorded one") {
		t.Errorf("the context is %d %s %s", code, out, errs)
	}
	failed, _, _ := sh.run("send", "--output", "json", "@error model_error")
	id2 := regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f-]{27}`).FindString(failed[strings.Index(failed, `"session_id"`):])
	if _, errs, code := sh.scoped("admin").run("sessions", "context", id2); code != 2 ||
		!strings.Contains(errs, "no complete reply") || !strings.Contains(errs, "Use --turn or --step") {
		t.Errorf("the context of a failed turn is %d %s", code, errs)
	}
	sh.must("send", "--session", fork, "@say Fork.")
	md := sh.must("sessions", "export", id)
	for _, want := range []string{"# Session " + id + "\n\n## User, 20", "\n\n> # Note\n> @call wiki_write",
		"\n\n- `wiki_write` write wiki page tea", "\n\n- `search` for tea", "\n\nDone.\n\n## User", "\n\nHalf.\n\n*(failed: model_error)*\n"} {
		if !strings.Contains(md, want) {
			t.Errorf("the Markdown lacks %q:\n%s", want, md)
		}
	}

	var order []string
	text := ""
	for line := range strings.Lines(sh.must("sessions", "export", id, "--format", "jsonl")) {
		var entry struct {
			Event   string
			Data    struct{ Text string }
			Message struct{ Role string }
		}
		if err := json.Unmarshal([]byte(line), &entry); err != nil {
			t.Fatalf("%v in %s", err, line)
		}
		text += entry.Data.Text
		if word := entry.Event + entry.Message.Role; word != "text" {
			order = append(order, word)
		}
	}
	// A replay ends with one done of its own.
	want := "user input_required tool_use tool_result usage assistant user tool_use tool_result usage error done assistant"
	if got := strings.Join(order, " "); got != want || text != "Done.Half." {
		t.Errorf("the lines are %s, want %s; the text is %q", got, want, text)
	}

	var whole struct {
		SessionID string `json:"session_id"`
		Messages  []any
		Events    []struct{ ID string }
	}
	if err := json.Unmarshal([]byte(sh.must("sessions", "export", id, "--format", "json")), &whole); err != nil || whole.SessionID != id ||
		len(whole.Messages) != 4 || len(whole.Events) < 8 {
		t.Errorf("one object: %v, %+v", err, whole)
	}

	sh.must("sessions", "erase", id, "--yes")
	if _, errs, code := sh.scoped("admin").run("sessions", "context", fork); code != 1 ||
		!strings.Contains(errs, "a session that this one was forked from were erased") || !strings.Contains(errs, "The log has the hash") {
		t.Errorf("the context of the fork is %d %s", code, errs)
	}

	sh.must("send", "--caller", "bob", "@say \x1b]0;owned\x07 and \u202egnp.exe")
	if err := json.Unmarshal([]byte(sh.must("sessions", "list", "--caller", "bob", "--json")), &list); err != nil {
		t.Fatal(err)
	}
	if md := sh.must("sessions", "export", list.Data[0].SessionID); strings.ContainsAny(md, "\x1b\x07\u202e") ||
		!strings.Contains(md, `\u001b]0;owned\u0007 and \u202egnp.exe`) {
		t.Errorf("the Markdown steers a terminal: %q", md)
	}

	for _, c := range []struct {
		args string
		says string
	}{
		{"sessions export " + id + " --format xml", "md, jsonl, json"},
		{"sessions export 0192f0aa-0000-7000-8000-000000000001 --format json", "does not exist in this workspace"},
		{"sessions show 0192f0aa-0000-7000-8000-000000000001", "does not exist in this workspace"},
	} {
		if _, errs, code := sh.run(strings.Fields(c.args)...); code != 2 || !strings.Contains(errs, c.says) {
			t.Errorf("%s: exit code %d, %s", c.args, code, errs)
		}
	}
}

// TestTheContextHasFilesAndEffort prints a response with an attached PDF and the effort of the model.
func TestTheContextHasFilesAndEffort(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_,
			_ = io.WriteString(w,
			`{"data":{"turn_id":"t","step":1,"model":"m","matches":true,"recorded_sha256":"a","rebuilt_sha256":"a","request":{"system":"Be brief.","tools":[],
			"messages":[{"role":"user","text":"Summarize.","files":[{"name":"paper.pdf","mime":"application/pdf","bytes":812,"sha256":"b"},
			{"name":"paper.pdf","mime":"text/plain","bytes":16,"sha256":"c","text":"[page 1]\nTrains."},
			{"mime":"image/png","bytes":70,"sha256":"d"}]}],"parameters":{"effort":"high"}}}}`)
	}))
	t.Cleanup(srv.Close)
	sh := shell{t: t, dir: t.TempDir(), environ: []string{"PARLEY_URL=" + srv.URL, "PARLEY_WORKSPACE=test", "PARLEY_API_KEY=x"}}
	out := sh.must("sessions", "context", "0192f0aa-0000-7000-8000-000000000001")
	for _, want := range []string{"\neffort: high\n",
		"\nSummarize.\nfile paper.pdf, application/pdf, 812 bytes\n" +
			"text of paper.pdf, for a model that does not read the file, 16 bytes\n[page 1]\nTrains.\nimage, image/png, 70 bytes\n"} {
		if !strings.Contains(out, want) {
			t.Errorf("the output lacks %q:\n%s", want, out)
		}
	}
}

func TestAnExportWaitsForTheEndOfATurn(t *testing.T) {
	t.Parallel()
	sh, _ := asking(t)
	_, errs, _ := sh.run("send", "--caller", "alice", writes)
	ask := timeLeft(t, errs)
	var list struct {
		Data []struct {
			SessionID string `json:"session_id"`
		}
	}
	if err := json.Unmarshal([]byte(sh.must("sessions", "list", "--json")), &list); err != nil {
		t.Fatal(err)
	}
	waits := sh.start("sessions", "export", list.Data[0].SessionID, "--format", "jsonl")
	given := sh.start("sessions", "export", list.Data[0].SessionID, "--format", "jsonl")
	given.interrupts <- os.Interrupt
	if code := wait.Receive(t, "the exit code", given.code); code != 130 || given.out.String() != "" {
		t.Errorf("interrupted: exit code %d, %s", code, given.out)
	}
	if got := sh.must("sessions", "show", list.Data[0].SessionID); !strings.Contains(got, "(in progress)") {
		t.Errorf("shown as %s", got)
	}
	sh.must("approvals", "allow", ask.ApprovalID.String())
	if code := wait.Receive(t, "the exit code", waits.code); code != 0 || !strings.Contains(waits.out.String(), `"Done."`) {
		t.Errorf("exit code %d, %s", code, waits.out)
	}
}
