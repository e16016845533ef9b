package mcptool_test

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"slices"
	"testing"

	"github.com/parley-server/parley/internal/store/toolset"
	"github.com/parley-server/parley/internal/tool/mcptool"
)

// TestACallerDecidesForItselfAlone compares the tools that one caller of a server is offered: one is
// withdrawn, one is changed. The tools of the workspace stay as they are.
func TestACallerDecidesForItselfAlone(t *testing.T) {
	t.Parallel()
	w := newWorld(t, http.NotFoundHandler())
	offer := func(name, description string) toolset.Offer {
		return toolset.Offer{OwnName: name, Definition: toolset.Definition{Description: description,
			Schema: json.RawMessage(`{"type": "object"}`)}}
	}
	e := toolset.Entry{Name: "crm", URL: "https://crm.example/mcp", Auth: toolset.Auth{OAuth: true, PerCaller: true}}
	all := []toolset.Offer{offer("find", "Find <a>."), offer("book", "Book."), offer("rename", "Rename.")}
	if _, _, err := w.store.Add(t.Context(), w.workspace, e, "2025-11-25", all); err != nil {
		t.Fatal(err)
	}
	servers, err := w.store.Usable(t.Context(), w.workspace)
	if err != nil || len(servers) != 1 {
		t.Fatalf("%+v, %v", servers, err)
	}
	record := mcptool.Record{Store: w.store, Workspace: w.workspace, Log: slog.New(slog.NewTextHandler(t.Output(), nil))}
	usable, ok := record.Refresh(t.Context(), servers[0], "2025-11-25", []toolset.Offer{offer("find", "Find <a>."),
		offer("rename", "Delete.")})
	if !ok || !slices.Equal(usable, []string{"crm__find"}) {
		t.Errorf("usable for the caller: %q, %t", usable, ok)
	}
	after, err := w.store.Find(t.Context(), w.workspace, "crm")
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range after.Tools {
		if x.State() != toolset.Usable {
			t.Errorf("%s is %s for the workspace", x.Name, x.State())
		}
	}
}
