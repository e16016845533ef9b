package builtin_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/parley-server/parley/internal/model"
	"github.com/parley-server/parley/internal/model/builtin"
	"github.com/parley-server/parley/internal/schema"
)

const answerSchema = `{"type":"object","properties":{"answer":{"type":"string"}},"required":["answer"],"additionalProperties":false}`

// dialogue plays the agent's part for a message with a schema: it offers final_answer, rejects an
// answer that does not fit, and insists if no answer arrives. It returns the text and the answers,
// with a "!" before the forced ones.
func dialogue(t *testing.T, message, schemaText string) (said string, answers []string) {
	t.Helper()
	s, err := schema.Compile(json.RawMessage(schemaText))
	if err != nil {
		t.Fatal(err)
	}
	req := model.Request{
		Messages: []model.Message{{Role: model.User, Text: message}},
		Tools:    append(slices.Clone(offered), model.Tool{Name: "final_answer", Schema: json.RawMessage(schemaText)}),
	}
	g := builtin.New()
	for range 12 {
		reply := generate(t.Context(), g, req)
		if reply.Err != nil {
			t.Fatal(reply.Err)
		}
		req.Messages = append(req.Messages, model.Message{Role: model.Assistant, Text: reply.text(), Calls: reply.Calls})
		if req.Output == nil {
			said += reply.text()
		} else {
			answers = append(answers, "!"+reply.text())
			if s.Validate(json.RawMessage(reply.text())) == nil {
				return said, answers
			}
		}
		for _, c := range reply.Calls {
			result := model.Message{Role: model.ToolRole, CallID: c.ID, Text: "done"}
			if c.Tool == "final_answer" {
				if answers = append(answers, string(c.Input)); s.Validate(c.Input) == nil {
					return said, answers
				}
				result.Text, result.Failed = "This does not fit.", true
			}
			req.Messages = append(req.Messages, result)
		}
		if len(reply.Calls) == 0 {
			req.Messages = append(req.Messages, model.Message{Role: model.User, Text: "Give an answer that fits."})
			req.Tools, req.Output = nil, &model.Output{Name: "final_answer", Schema: json.RawMessage(schemaText)}
		}
	}
	return said, answers
}

func TestAnswersFitTheirSchema(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../../schema/testdata/accepted/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("no schemas: %v", err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, message := range []string{"What is 12*7+3?", "@structured none"} {
			if _, answers := dialogue(t, message, string(data)); len(answers) != 1 {
				t.Errorf("%s, %s: the answers were %q", file, message, answers)
			}
		}
	}
}

func TestAnswersAreMadeOfWhatWasSaid(t *testing.T) {
	t.Parallel()
	for message, want := range map[string]struct {
		said, answer string
	}{
		"What is 12*7+3?":               {"12*7+3 = 87", `{"answer":"12*7+3 = 87"}`},
		"@say Hello you.":               {"Hello you.", `{"answer":"Hello you."}`},
		"@call read\n@wait 0s":          {"", `{"answer":"text"}`},
		"Only calls here.\n@call read":  {"", `{"answer":"Only calls here."}`},
		"@bench 1 deltas of 20 bytes\n": {"", `{"answer":"text"}`},
	} {
		said, answers := dialogue(t, message, answerSchema)
		if strings.HasPrefix(message, "@bench") {
			said = "" // it contains the time
		}
		if said != want.said || len(answers) != 1 || answers[0] != want.answer {
			t.Errorf("%q: text %q, answers %q", message, said, answers)
		}
	}
}

func TestScriptsSayWhichAnswersAreGiven(t *testing.T) {
	t.Parallel()
	for script, want := range map[string][]string{
		"@say Hi.\n@structured {\"answer\":\"x\"}":                                     {`{"answer":"x"}`},
		"@structured {\"answer\":1}\n@say Hi.\n@structured [2]\n@call read\n@say Bye.": {`{"answer":1}`, `[2]`, `{"answer":"text"}`},
		"@structured {\"answer\":\n@say Hi.": {`{"_malformed":"{\"answer\":"}`,
			`{"answer":"text"}`},
		"@say Hi.\n@structured none\n@structured {}\n@structured {\"answer\":\"at last\"}": {`!{}`, `!{"answer":"at last"}`},
		"@structured {\"a\":1}\n@structured none\n@structured not json\n@say Hi.":          {`{"a":1}`, `!not json`, `!{"answer":"text"}`},
		"@repeat 3\n@structured none\n@structured [1]":                                     {`![1]`, `![1]`, `![1]`, `!{"answer":"text"}`},
		"@length\n@say More.\n@structured {}":                                              {`!{}`, `!{"answer":"text"}`},
	} {
		if _, answers := dialogue(t, script, answerSchema); !slices.Equal(answers, want) {
			t.Errorf("%q: the answers were %q, want %q", script, answers, want)
		}
	}
	if said, answers := dialogue(t, "What is 1+1?", `{"not":{}}`); said != "1+1 = 2" || len(answers) != 12 || answers[11] != "null" {
		t.Errorf("text %q, answers %q", said, answers)
	}
	if _, answers := dialogue(t, "@repeat 100\n@structured {}\n@say Hi.", answerSchema); len(answers) != 12 || answers[11] != "{}" {
		t.Errorf("the answers were %q", answers)
	}
}

func TestToolsAreUsedBeforeTheAnswer(t *testing.T) {
	t.Parallel()
	g := builtin.New()
	req := user("@say One.\n@call grep {\"pattern\":\"x\"}\n@say Two.")
	req.Tools = append(slices.Clone(req.Tools), model.Tool{Name: "final_answer", Schema: json.RawMessage(answerSchema)})
	first := generate(t.Context(), g, req)
	if len(first.Calls) != 1 || first.Calls[0].Tool != "grep" || first.Stop != model.StopTools {
		t.Fatalf("%+v", first)
	}
	req.Messages = append(req.Messages, model.Message{Role: model.Assistant, Text: first.text(), Calls: first.Calls},
		model.Message{Role: model.ToolRole, CallID: first.Calls[0].ID, Text: "nothing"})
	req.Partial = "Tw"
	second := generate(t.Context(), g, req)
	if second.text() != "o." || len(second.Calls) != 1 || second.Calls[0].Tool != "final_answer" || second.Calls[0].ID == first.Calls[0].ID {
		t.Errorf("%+v", second)
	}
	for _, script := range []string{"@error model_error", "@refuse", "@length"} {
		req := user(script)
		req.Tools = []model.Tool{{Name: "final_answer", Schema: json.RawMessage(answerSchema)}}
		if r := generate(t.Context(), g, req); len(r.Calls) > 0 {
			t.Errorf("%s: %+v", script, r)
		}
	}
}

func TestImagesAreSeen(t *testing.T) {
	t.Parallel()
	png := model.Image{MIME: "image/png", Data: make([]byte, 70)}
	for _, c := range []struct {
		text   string
		images []model.Image
		want   string
	}{
		{"", []model.Image{png}, "I see one image, image/png, 70 bytes."},
		{"What is 1+1?", []model.Image{png, {MIME: "image/gif", Data: []byte("GIF")}},
			"I see 2 images: image/png, 70 bytes; image/gif, 3 bytes.\n\n1+1 = 2"},
		{"@say Hi.", []model.Image{png}, "Hi."},
	} {
		req := model.Request{Messages: []model.Message{
			{Role: model.User, Text: "Before.", Images: []model.Image{{MIME: "image/webp"}}}, {Role: model.Assistant, Text: "Yes."},
			{Role: model.User, Text: c.text, Images: c.images},
		}}
		if got := generate(t.Context(), builtin.New(), req).text(); got != c.want {
			t.Errorf("%q: %q, want %q", c.text, got, c.want)
		}
	}
	req := user("Summarise the wiki page onboarding")
	req.Messages[0].Images = []model.Image{png}
	if got := generate(t.Context(), builtin.New(), req); got.text() != "" || len(got.Calls) != 1 {
		t.Errorf("text before the answer: %q", got.text())
	}
}
