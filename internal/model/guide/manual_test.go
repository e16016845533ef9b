package guide

import (
	"slices"
	"strings"
	"testing"
)

func TestInternalsAnswerLast(t *testing.T) {
	t.Parallel()
	const page = "docs/" + internals
	for _, h := range manual().use.Find("group commit append lease epoch session turn stream", 1000) {
		if h.Doc == page {
			t.Fatalf("%s competes with the pages for users", page)
		}
	}
	if got := consult("What is a group commit of the appender?").text; !strings.Contains(got, page) {
		t.Errorf("nobody knows what a group commit is: %q", got)
	}
}

func TestVocabularyOfParleyIsStemmed(t *testing.T) {
	t.Parallel()
	for _, question := range []string{"streaming", "sessions", "API keys?", "caller_id"} {
		if !aboutParley(question) {
			t.Errorf("%q is not about Parley", question)
		}
	}
	if aboutParley("where is lunch") || slices.Contains(vocabularyOfParley, "") {
		t.Error("lunch is about Parley")
	}
}
