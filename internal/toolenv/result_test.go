package toolenv_test

import (
	"strings"
	"testing"

	"github.com/parley-server/parley/internal/testing/modeltest"
	"github.com/parley-server/parley/internal/tool"
)

// TestResultsAreFilesOfTheFolder keeps results of two tools: the files are numbered, a result that has
// a file keeps it, and another process that continues the session finds them.
func TestResultsAreFilesOfTheFolder(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	run := w.begin(t, w.turn(t))
	for _, c := range []struct{ tool, content, want string }{
		{"fetch", "one", "tool-results/fetch-1.txt"}, {"fetch", "two", "tool-results/fetch-2.txt"}, {"fetch", "one", "tool-results/fetch-1.txt"},
		{"crm__find", "one", "tool-results/crm__find-1.txt"}, {"../a b", "one", "tool-results/---a-b-1.txt"},
		{"", "one", "tool-results/result-1.txt"},
	} {
		if got, err := run.KeepResult(t.Context(), tool.Call{ID: "c", Tool: c.tool}, "txt", []byte(c.content)); err != nil || got != c.want {
			t.Errorf("%s of %s is kept as %q, %v", c.content, c.tool, got, err)
		}
	}
	next := w.begin(t, w.turn(t)) // in a process of its own
	if got, err := next.ReadResult(t.Context(), "tool-results/fetch-2.txt"); err != nil || got != "two" {
		t.Errorf("%q, %v", got, err)
	}
	if got, err := next.KeepResult(t.Context(), tool.Call{Tool: "fetch"}, "txt", []byte("two")); err != nil ||
		got != "tool-results/fetch-2.txt" {
		t.Errorf("after a crash the result is kept as %q, %v", got, err)
	}
	if _, err := run.KeepResult(t.Context(), tool.Call{Tool: "fetch"}, "txt", []byte("zombie")); err == nil {
		t.Error("a run that lost its turn keeps a result")
	}
	if err := next.Write(t.Context(), tool.Call{}, "big", make([]byte, 60<<20)); err != nil {
		t.Fatal(err)
	}
	if _, err := next.KeepResult(t.Context(), tool.Call{Tool: "fetch"}, "txt", make([]byte, 65<<20)); !strings.Contains(refused(t, err),
		"64 MiB") {
		t.Errorf("a file over the limit: %v", err)
	}
	if got, err := next.KeepResult(t.Context(), tool.Call{Tool: "fetch"}, "txt", []byte("three")); err != nil ||
		got != "tool-results/fetch-3.txt" {
		t.Errorf("after a refusal: %q, %v", got, err)
	}
}

// TestFolderOfResultsIsNoWayOut puts a file and links at the place of results.
func TestFolderOfResultsIsNoWayOut(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	run := w.begin(t, w.turn(t))
	if err := run.Write(t.Context(), tool.Call{}, "tool-results", []byte("a file")); err != nil {
		t.Fatal(err)
	}
	if _, err := run.KeepResult(t.Context(), tool.Call{Tool: "fetch"}, "txt", []byte("x")); refused(t, err) == "" {
		t.Error("a result is kept below a file")
	}
}

// TestPDFIsReadAsText reads a PDF of the folder.
func TestPDFIsReadAsText(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	run := w.begin(t, w.turn(t))
	if err := run.Write(t.Context(), tool.Call{}, "paper.pdf", modeltest.PDF("BT /F 12 Tf (Hello) Tj ET")); err != nil {
		t.Fatal(err)
	}
	if got, err := run.Text(t.Context(), "paper.pdf"); err != nil || got != "[page 1]\nHello\n" {
		t.Errorf("%q, %v", got, err)
	}
	if err := run.Write(t.Context(), tool.Call{}, "broken.pdf", []byte("%PDF-1.7\n")); err != nil {
		t.Fatal(err)
	}
	if got, err := run.Text(t.Context(), "broken.pdf"); err != nil || !strings.HasPrefix(got, "[The PDF has no text") {
		t.Errorf("%q, %v", got, err)
	}
}
