package builtin_test

import (
	"io/fs"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/app/demo"
	"github.com/parley-server/parley/internal/model"
	"github.com/parley-server/parley/internal/model/builtin"
	"github.com/parley-server/parley/internal/store/wiki"
	"github.com/parley-server/parley/internal/store/workspace"
	"github.com/parley-server/parley/internal/testing/dbtest"
	"github.com/parley-server/parley/internal/tool"
	"github.com/parley-server/parley/internal/tool/knowledge"
)

// office is the demo workspace: its documents in a database, and the real tools.
type office struct {
	workspace uuid.UUID
	tools     map[string]tool.Tool
	specs     []model.Tool
}

func openOffice(t *testing.T) office {
	t.Helper()
	pool := dbtest.New(t)
	w, err := workspace.New(pool).Create(t.Context(), "demo", "", "")
	if err != nil {
		t.Fatal(err)
	}
	store := wiki.New(pool)
	err = fs.WalkDir(demo.Files, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := demo.Files.ReadFile(path)
		if err == nil {
			_, err = store.Put(t.Context(), w.ID, path, string(content))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	o := office{workspace: w.ID, tools: make(map[string]tool.Tool)}
	for _, tl := range knowledge.Tools(store, nil) {
		s := tl.Spec()
		o.tools[s.Name] = tl
		o.specs = append(o.specs, model.Tool{Name: s.Name, Description: s.Description, Schema: s.Schema})
	}
	return o
}

// talk sends one message and returns the answer and the references.
func (o office) talk(t *testing.T, message string) (answer string, references []string) {
	t.Helper()
	req := user(message)
	req.Tools = o.specs
	for range 5 {
		var s spoken
		synctest.Test(t, func(t *testing.T) { s = generate(t.Context(), builtin.New(), req) })
		if s.Err != nil {
			t.Fatal(s.Err)
		}
		if s.Stop != model.StopTools {
			return s.text(), references
		}
		var results []tool.Result
		for _, c := range s.Calls {
			res, err := o.tools[c.Tool].Call(t.Context(), tool.Call{ID: c.ID, Workspace: o.workspace, Input: c.Input})
			if err != nil {
				t.Fatal(err)
			}
			results = append(results, res)
			for _, r := range res.References {
				references = append(references, r.Source+" "+r.Path)
			}
		}
		req = settled(req, s, results)
	}
	t.Fatalf("%q: no answer after five steps", message)
	return "", nil
}

func TestGuideAnswersFromTheWorkspacesKnowledge(t *testing.T) {
	t.Parallel()
	o := openOffice(t)
	for _, c := range []struct{ question, says, reads string }{
		{"Summarise the wiki page onboarding", "ask for your buddy", "wiki_read onboarding"},
		{"Please summarize our security page.", "lock your screen", "wiki_read security"},
		{"What does the wiki page expenses say?", "keep the receipt", "wiki_read expenses"},
		{"Give me a summary of the page called support-handbook", "From the wiki page support-handbook.", "wiki_read support-handbook"},
		{"What is the hotel limit?", "the limit is 140 euros a night", "wiki_read expenses"},
		{"How do I claim expenses?", "Photograph the receipt", "wiki_read expenses"},
		{"What is the release process?", "every second Tuesday", "wiki_read release-process"},
		{"How long is the warranty?", "ten years", "wiki_read support-handbook"},
		{"I lost my phone", "Report a lost or stolen device", "wiki_read security"},
		{"how many days to return a desk", "within 60 days", "wiki_read support-handbook"},
		{"Tell me about night trains", "A single cabin", "read policies/travel.txt"},
		{"Who supplies motors?", "Brenner Antriebe", "read contacts/suppliers.csv"},
		{"phishing", "Forward suspicious mail", "search wiki/security.md"},
	} {
		answer, references := o.talk(t, c.question)
		if !strings.Contains(answer, c.says) || !slices.Contains(references, c.reads) {
			t.Errorf("%s\n%q\n%s", c.question, references, answer)
		}
	}
	if answer, _ := o.talk(t, "Who supplies motors?"); strings.Contains(answer, "Swiftline") {
		t.Errorf("more of the list than requested:\n%s", answer)
	}
}

func TestGuideSaysWhatItCannotDo(t *testing.T) {
	t.Parallel()
	o := openOffice(t)
	for question, want := range map[string]string{
		"Write a poem about desks":                  "needs a real language model",
		"please translate this into French: hello":  "needs a real language model",
		"How do I cook pasta?":                      "I found nothing about that",
		"???":                                       "I found nothing about that",
		"Summarise the wiki page on-bording":        `Did you mean "onboarding"?`,
		"Summarise the wiki page quarterly-numbers": `Existing pages: "expenses", "onboarding"`,
	} {
		answer, references := o.talk(t, question)
		if !strings.Contains(answer, want) || len(references) > 0 {
			t.Errorf("%s\n%q\n%s", question, references, answer)
		}
		if !strings.Contains(want, `"`) && !strings.Contains(answer, "OPENAI_API_KEY") {
			t.Errorf("%s: the answer does not explain how to get a real model:\n%s", question, answer)
		}
	}
}

func TestGuideKnowsParley(t *testing.T) {
	t.Parallel()
	o := openOffice(t)
	for question, section := range map[string]string{
		"How do I resume a stream?":                        "docs/reference/streaming.md, “Resume a stream",
		"how can I reconnect after a dropped stream":       "docs/reference/streaming.md, “Resume a stream",
		"How do I reconnect after the connection dropped?": "docs/reference/streaming.md, “Resume a stream",
		"What is a cursor?":                                "docs/reference/streaming.md, “The cursor",
		"what does session_gone mean?":                     "docs/reference/streaming.md, “session_gone”",
		"What events does a stream have?":                  "docs/reference/streaming.md, “The events of a stream”",
		"What is in a tool_result event?":                  "docs/reference/streaming.md, “Event tool_result”",
		"Can I use EventSource in a browser?":              "docs/reference/streaming.md, “Read a stream in a browser”",
		"Why does nginx buffer my stream?":                 "docs/reference/streaming.md, “Proxies and buffering”",
		"How do I cancel a turn?":                          "docs/reference/api.md, “Cancel a running turn”",
		"How do I create an API key?":                      "docs/reference/api.md, “Create an API key”",
		"Which scopes are there?":                          "docs/reference/api.md, “Scopes of a key”",
		"What is a caller_id?":                             "docs/reference/api.md, “Continue a conversation",
		"How do I get a blocking answer?":                  "docs/reference/api.md, “Blocking",
		"How do I list sessions?":                          "docs/reference/api.md, “List sessions”",
		"What is readyz?":                                  "docs/reference/api.md, “Health checks",
		"Which directives do you have?":                    "docs/guides/guide-model.md, “Directives",
		"How do I use ollama?":                             "docs/guides/guide-model.md, “Use a real language model”",
		"How do I upload a file?":                          "docs/guides/files.md, “Upload a file”",
		"How do I attach files to a message?":              "docs/guides/files.md, “Attach files to a message”",
		"Which types of files are taken?":                  "docs/guides/files.md, “Which types of files are taken”",
		"How do I register a secret?":                      "docs/guides/secrets.md, “Register a secret”",
		"How do I rotate the master key?":                  "docs/guides/secrets.md, “Rotate the master key”",
		"How do I verify the signature of a callback?":     "docs/guides/callbacks.md, “Verify the signature of a callback”",
		"How do I test callbacks on localhost?":            "docs/guides/callbacks.md, “Callbacks in development”",
		"Does closing the connection cancel the turn?":     "docs/reference/api.md, “Cancel a running turn”",
	} {
		answer, _ := o.talk(t, question)
		if !strings.Contains(answer, section) {
			t.Errorf("%s\n%s", question, answer)
		}
	}
}
