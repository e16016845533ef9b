package builtin

import (
	"slices"
	"strings"
	"testing"
)

func TestInternalsAnswerLast(t *testing.T) {
	t.Parallel()
	for _, h := range manual().use.Find("group commit append lease epoch session turn stream rule page proved signed address", 1000) {
		if strings.HasPrefix(h.Doc, "docs/"+internals) {
			t.Fatalf("%s competes with the pages for users", h.Doc)
		}
	}
	for question, page := range map[string]string{"What is a group commit of the appender?": internals + "design.md",
		"Which rule is proved by TestKilledMidText?": internals + "conformance.md"} {
		if got := consultManual(question).text; !strings.Contains(got, "docs/"+page) {
			t.Errorf("%s is not answered from %s: %q", question, page, got)
		}
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
