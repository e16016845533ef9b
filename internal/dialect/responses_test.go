package dialect_test

import (
	"strings"
	"testing"

	"github.com/parley-server/parley/internal/apikey"
	"github.com/parley-server/parley/internal/workspace"
)

const responses = "/openai/v1/responses"

// A response is a turn, and the one that names it goes on in its session.
func TestResponses(t *testing.T) {
	t.Parallel()
	s := start(t, options{})
	first := s.get(t, call{path: responses, body: `{"model":"demo","input":"count to 3","instructions":"be brief"}`})
	if first.status != 200 || first.body["status"] != "completed" || !strings.Contains(first.text, `"text":"1 2 3"`) || !strings.Contains(first.header.Get("X-Parley-Ignored"), "instructions") {
		t.Fatalf("%d %s %v", first.status, first.text, first.header)
	}
	id := first.body["id"].(string)
	list := s.stream(t, call{path: responses, body: `{"model":"demo","stream":true,"previous_response_id":"` + id + `","input":[{"type":"message","role":"user","content":[{"type":"input_text","text":"count to 2"}]}]}`})
	if got := types(t, list); got != "response.created response.in_progress response.output_item.added response.content_part.added response.output_text.delta "+
		"response.output_text.done response.content_part.done response.output_item.done response.completed" {
		t.Errorf("%s", got)
	}
	if last := list[len(list)-1]; !strings.Contains(last, first.body["session_id"].(string)) || !strings.Contains(last, `"previous_response_id":"`+id+`"`) {
		t.Errorf("%s", last)
	}
	inASchema := `{"model":"demo","input":"@structured {\"n\":1}","text":{"format":{"type":"json_schema","name":"n","schema":{"type":"object","properties":{"n":{"type":"integer"}}}}}}`
	if r := s.get(t, call{path: responses, body: inASchema}); !strings.Contains(r.text, `"text":"{\"n\":1}"`) {
		t.Errorf("%d %s", r.status, r.text)
	}
	if list := s.stream(t, call{path: responses, body: `{"model":"demo","stream":true,"input":"@error model_error"}`}); !strings.HasSuffix(types(t, list), " response.failed") {
		t.Errorf("%v", list)
	}
	other, err := workspace.New(s.pool).Create(t.Context(), "another", "", "")
	if err != nil {
		t.Fatal(err)
	}
	foreign := call{path: responses, key: s.issue(t, other, apikey.All...), body: `{"model":"another","input":"x","previous_response_id":"` + id + `"}`}
	nobodys := foreign
	nobodys.body = strings.Replace(foreign.body, id, "resp_0197a0d2-0000-7000-8000-000000000001", 1)
	for _, c := range []call{foreign, nobodys} {
		if r := s.get(t, c); r.status != 404 || r.code != "SESSION_NOT_FOUND" {
			t.Errorf("%s: %d %s", c.body, r.status, r.text)
		}
	}
}
