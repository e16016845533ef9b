package web

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/parley-server/parley/internal/store/account"
	"github.com/parley-server/parley/internal/store/apikey"
)

// TestKnowledgeIsEdited uploads files, finds them as the agent does, edits and deletes documents. A
// change of another writer is shown before it is replaced, and no path, title or text becomes markup.
func TestKnowledgeIsEdited(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := w.signIn(t, account.NewUser{Email: "edda@halden.example", Name: "Edda Berg"}, apikey.Editor)
	address, dir := w.URL+"/w/demo/knowledge", t.TempDir()
	p.Go(address)
	p.See("h2", "No documents")
	hostile := "# Title " + strings.Join(corpus, " ") + "\n\n" + strings.Join(corpus, "\n\n") + "\n\n[next](onboarding.md)\n"
	upload := func(files map[string]string) {
		t.Helper()
		var paths []string
		for name, content := range files {
			paths = append(paths, filepath.Join(dir, name))
			if err := os.WriteFile(paths[len(paths)-1], []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		p.Fill("#f-folder", "wiki")
		p.MustElement("#f-file").MustSetFiles(paths...)
		p.Press("button.primary", "Upload")
	}
	upload(
		map[string]string{"onboarding.md": "# Onboarding\n\nBring a **laptop** and read [releases](release-process.md).\n\n| day | task " +
			"|\n|---|---|\n| 1 | Accounts |\n",
			"release-process.md": "# Release process\n\n1. Freeze the branch.\n2. Tag it.\n", "<img src=x onerror=hacked=1>.md": hostile})
	p.See(".note", "3 documents uploaded")
	p.See("tr", "Release process")
	unhurt(t, p)
	upload(map[string]string{"onboarding.md": "Other", "notes.txt": "Text"})
	p.See("li", "Tick the box to replace it")
	p.See("li", "Below wiki/ there are only pages")
	p.Shot("knowledge-upload")
	if d, err := w.Wiki.Get(t.Context(), w.Workspace.ID, "wiki/onboarding.md"); err != nil || d.Version != 1 {
		t.Errorf("the document is at version %d, %v", d.Version, err)
	}
	for i := range documentsOnPage {
		if _, err := w.Wiki.Put(t.Context(), w.Workspace.ID, fmt.Sprintf("policies/<b>%03d.txt", i), "The rule of a policy."); err != nil {
			t.Fatal(err)
		}
	}
	p.Go(address)
	p.See("tr", "100 documents")
	p.Review("knowledge")
	p.Press("td a", "policies/")
	p.See("tr", "<b>099.txt")
	if n := len(p.MustElements(".pager [rel=next]")); n != 0 {
		t.Error("100 documents need a second page")
	}
	p.Go(address + "?folder=policies%2F&after=2%3Cb%3E097.txt")
	p.See("tr", "<b>098.txt")
	p.See(".pager", "2 entries")

	p.Go(address)
	p.Fill("[name=q]", "freeze the branch")
	p.Press("button", "Search")
	hits, err := w.Wiki.Search(t.Context(), w.Workspace.ID, "freeze the branch", "", 1)
	if err != nil || len(hits) != 1 {
		t.Fatal(hits, err)
	}
	p.See(".rows li:first-child", "wiki/release-process.md, line 1")
	p.See(".rows li:first-child .badge", fmt.Sprintf("score %.2f", hits[0].Score))
	p.Review("knowledge-search")
	p.Press(".rows li:first-child a", "Release process")
	p.See("h1", "Release process")
	p.Go(address + "/document?path=wiki%2Fonboarding.md")
	p.See(".prose strong", "laptop")
	p.Review("document")
	p.Press(".prose a", "releases")
	p.See("h1", "Release process")
	for _, rest := range []string{"", "&source=1", "&edit=1", "&delete=1"} {
		p.Go(address + "/document?path=wiki%2F%3Cimg+src%3Dx+onerror%3Dhacked%3D1%3E.md" + rest)
		p.See("body", "<img src=x")
		unhurt(t, p)
	}
	p.Press("button.fill", "Delete document")
	p.See(".note", "deleted")

	p.Go(address + "/document?path=wiki%2Fonboarding.md")
	p.Press("a.btn", "Edit")
	p.Fill("#f-content", "# Onboarding\n\nMine.\n")
	if _, err := w.Wiki.Put(t.Context(), w.Workspace.ID, "wiki/onboarding.md", "# Onboarding\n\nTheirs.\n"); err != nil {
		t.Fatal(err)
	}
	p.Press("button.primary", "Save")
	p.See(".note.bad", "it is at version 2 now")
	p.See(".diff del", "Theirs")
	p.See(".diff ins", "Mine")
	p.Shot("document-conflict")
	p.Press("button.primary", "Save")
	p.See(".note", "Version 3 saved")
	p.Press("a.btn", "Delete")
	if _, err := w.Wiki.Put(t.Context(), w.Workspace.ID, "wiki/onboarding.md", "# Onboarding\n\nLater.\n"); err != nil {
		t.Fatal(err)
	}
	p.Press("button.fill", "Delete document")
	p.See("main", "changed since you opened it")
	p.Go(address + "/document?new=1")
	p.Fill("#f-path", "wiki/onboarding.md")
	p.Fill("#f-content", "New.")
	p.Press("button.primary", "Save")
	p.See(".err", "There is a document with this path")
	p.Fill("#f-path", "../outside")
	p.Press("button.primary", "Save")
	p.See(".err", "no empty, . or .. segments")
	if d, err := w.Wiki.Get(t.Context(), w.Workspace.ID, "wiki/onboarding.md"); err != nil || d.Version != 4 {
		t.Errorf("the document is at version %d, %v", d.Version, err)
	}
	viewer := w.signIn(t, account.NewUser{Email: "vera@halden.example", Name: "Vera Holm"}, apikey.Viewer)
	viewer.Go(address + "/document?path=wiki%2Fonboarding.md&edit=1")
	viewer.See(".prose", "Later")
	if n := len(viewer.MustElements("main form, header .btn:not(.nav-open)")); n != 0 {
		t.Errorf("a viewer has %d forms", n)
	}
}
