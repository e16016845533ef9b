package builtin_test

import (
	"strings"
	"testing"

	"github.com/parley-server/parley/internal/model"
	"github.com/parley-server/parley/internal/model/builtin"
	"github.com/parley-server/parley/internal/tool"
)

func TestToolsThatActAreUsedWhenAskedFor(t *testing.T) {
	bubble(t, func(t *testing.T) {
		for question, want := range map[string]string{
			"Run `ls -la | wc -l`":                  `bash {"command":"ls -la | wc -l"}`,
			"please run the command echo 'a b'":     `bash {"command":"echo 'a b'"}`,
			`Execute "git status".`:                 `bash {"command":"git status"}`,
			"Fetch https://example.com/a?b=c.":      `http_request {"url":"https://example.com/a?b=c"}`,
			"Write Trains first. to the file t.txt": `write {"content":"Trains first.\n","path":"t.txt"}`,
			"Create the file out/a.md: # A\n\nText": `write {"content":"# A\n\nText\n","path":"out/a.md"}`,
			"Give me the file out/report.csv":       `attach_file {"path":"out/report.csv"}`,
		} {
			req := user(question)
			req.Tools = append(req.Tools, model.Tool{Name: "bash"}, model.Tool{Name: "http_request"}, model.Tool{Name: "write"},
				model.Tool{Name: "attach_file"})
			one := generate(t.Context(), builtin.New(), req)
			if got := strings.Join(names(one.Calls), ";"); got != want {
				t.Errorf("%q: %s", question, got)
				continue
			}
			two := generate(t.Context(), builtin.New(), settled(req, one, []tool.Result{{Output: "It is so.\n```\n"}}))
			if len(two.Calls) > 0 || !strings.Contains(two.text(), "It is so.") {
				t.Errorf("%q: then %v %q", question, names(two.Calls), two.text())
			}
			without := generate(t.Context(), builtin.New(), user(question))
			if len(without.Calls) > 0 || !strings.HasPrefix(without.text(), "I cannot ") {
				t.Errorf("%q without the tool: %v %q", question, names(without.Calls), without.text())
			}
		}
		for _, question := range []string{"Write a poem about files", "What does it cost to run a server?",
			"Where is the file format documented?"} {
			req := user(question)
			req.Tools = append(req.Tools, model.Tool{Name: "bash"}, model.Tool{Name: "write"})
			if got := strings.Join(names(generate(t.Context(), builtin.New(), req).Calls), ";"); strings.Contains(got, "bash") ||
				strings.Contains(got, "write") {
				t.Errorf("%q: %s", question, got)
			}
		}
	})
}
