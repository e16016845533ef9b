package attach_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/uuid"
	"go.uber.org/goleak"

	"github.com/parley-server/parley/internal/store/filestore"
	"github.com/parley-server/parley/internal/store/vault"
	"github.com/parley-server/parley/internal/store/workspace"
	"github.com/parley-server/parley/internal/testing/dbtest"
	"github.com/parley-server/parley/internal/tool"
	"github.com/parley-server/parley/internal/tool/attach"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func summary(t tool.Tool, input string) string {
	return t.(tool.Summarizer).Summary(json.RawMessage(input))
}

func TestAFileIsAttached(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t)
	ws, err := workspace.New(pool).Create(t.Context(), "acme", "", "")
	if err != nil {
		t.Fatal(err)
	}
	keys, err := vault.ParseKeys(vault.GenerateKey())
	if err != nil {
		t.Fatal(err)
	}
	files := filestore.New(pool, keys, filestore.Options{})
	tl := attach.Tool(files, nil)
	session, turn := uuid.New(), uuid.New()
	if _, err := pool.Exec(t.Context(), `INSERT INTO sessions (id, workspace_id) VALUES ($1, $2)`, session, ws.ID); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		id, input, filename, mime string
		size                      int64
	}{
		{"1", `{"filename":"report.csv","content":"a,b\n1,2\n"}`, "report.csv", "text/csv", 8},
		{"2", `{"filename":"../x/dot.png","content":"iVBORw0KGgo=","encoding":"base64","mime":"image/png"}`, "dot.png", "image/png", 8},
		{"3", `{"filename":"page.html","content":"<html>","encoding":"text","mime":"text/html"}`, "page.html", "text/html", 6},
		{"1", `{"filename":"report.csv","content":"a,b\n1,2\n"}`, "report.csv", "text/csv", 8}, // after a crash
	} {
		call := tool.Call{ID: c.id, Workspace: ws.ID, Session: session, Turn: turn, Input: json.RawMessage(c.input)}
		res, err := tl.Call(t.Context(), call)
		if err != nil || !res.OK || !strings.Contains(res.Output, "Attached "+c.filename+" ("+c.mime) || strings.Contains(res.Output,
			"signature") {
			t.Errorf("%s: %+v, %v", c.input, res, err)
		}
	}
	got, err := files.Produced(t.Context(), pool, turn)
	if err != nil || len(got) != 3 || got[1].Filename != "dot.png" || got[1].MIME != "image/png" || got[1].Size != 8 {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestWhatTheModelGetsWrong(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t)
	ws, err := workspace.New(pool).Create(t.Context(), "acme", "", "")
	if err != nil {
		t.Fatal(err)
	}
	keys, err := vault.ParseKeys(vault.GenerateKey())
	if err != nil {
		t.Fatal(err)
	}
	tl := attach.Tool(filestore.New(pool, keys, filestore.Options{}), nil)
	for input, want := range map[string]string{
		`{"path":"a.txt","content":"x"}`: `Give "path" or "content"`,
		`{"path":"a.txt"}`:               "has no folder",
		`nonsense`:                       "JSON object",
		`[]`:                             "JSON object",
		`{}`:                             `"filename" is required`,
		`{"filename":" "}`:               `"filename" is required`,
		`{"filename":1}`:                 `"filename" must be a string, not a number.`,
		`{"filename":"a.txt","content":"x","encoding":"rot13"}`:                 `"encoding" is`,
		`{"filename":"a.txt","content":"%%%","encoding":"base64"}`:              "not base64",
		`{"filename":"a.exe","content":"x"}`:                                    "a system could execute it",
		`{"filename":"a.txt","content":"#!/bin/sh"}`:                            "a system would run",
		`{"filename":"a.png","content":"x","mime":"image/png"}`:                 "looks like text/plain",
		`{"filename":"a.txt","content":"x","mime":"nonsense"}`:                  "media type",
		`{"filename":"a.txt","content":"` + strings.Repeat("x", 1<<20+1) + `"}`: "too large",
		`{"filename":"a.txt","content":"` + strings.Repeat("x", 2<<20) + `"}`:   "too large",
	} {
		res, err := tl.Call(t.Context(), tool.Call{ID: "1", Workspace: ws.ID, Session: uuid.New(), Turn: uuid.New(),
			Input: json.RawMessage(input)})
		if err != nil || res.OK || !strings.Contains(res.Output, want) {
			t.Errorf("%.60s: %+v, %v", input, res, err)
		}
	}
	pool.Close()
	if res, err := tl.Call(t.Context(), tool.Call{ID: "1", Workspace: ws.ID,
		Input: json.RawMessage(`{"filename":"a.txt","content":"x"}`)}); err == nil {
		t.Errorf("without a database: %+v", res)
	}
}

func TestSummary(t *testing.T) {
	t.Parallel()
	tl := attach.Tool(nil, nil)
	for input, want := range map[string]string{
		`{"filename":"report.csv","content":"` + strings.Repeat("x", 1200) + `"}`: "attach report.csv (1.2 KiB)",
		`{"path":"out/a.txt"}`:              "attach a.txt",
		`{"filename":"a.txt","content":""}`: "attach a.txt (0 B)",
		`{"filename":"a.txt","content":"` + strings.Repeat("x", 1<<20-1) + `"}`: "attach a.txt (1.0 MiB)",
		`{"filename":"../../b.bin","content":"AAAA","encoding":"base64"}`:       "attach b.bin (3 B)",
		`{"filename":"C:\\x\\a\u202eb.txt","content":""}`:                       `attach "a\u202eb.txt" (0 B)`,
		`{"filename":"` + strings.Repeat("é", 100) + `","content":""}`:          `attach "` + strings.Repeat("é", 60) + `"… (0 B)`,
		`{"filename":1}`: "attach a file",
		``:               "attach a file",
	} {
		if got := summary(tl, input); got != want {
			t.Errorf("%.60s: %q, want %q", input, got, want)
		}
	}
	if spec := tl.Spec(); spec.Name != "attach_file" || !spec.Idempotent || !json.Valid(spec.Schema) {
		t.Errorf("%+v", spec)
	}
}
