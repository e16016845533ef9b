package openai_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-server/parley/internal/event"
	"github.com/parley-server/parley/internal/model"
	"github.com/parley-server/parley/internal/model/openai"
	"github.com/parley-server/parley/internal/testing/modeltest"
)

func TestFieldsOfTheWrongTypeAreReadOrLeftOut(t *testing.T) {
	t.Parallel()
	call := []event.ToolCall{{ID: "7", Tool: "read", Input: json.RawMessage(`{"n":1}`)}}
	for chunk, want := range map[string]modeltest.Heard{
		delta(`"tool_calls":[{"index":"1","id":7,"function":{"name":"read","arguments":{"n":1}}}]`): {Stop: model.StopTools, Calls: call},
		delta(`"content":5`):                         {Text: "5", Stop: model.StopEnd},
		delta(`"content":null,"tool_calls":{}`):      {Stop: model.StopEnd},
		delta(`"tool_calls":"none","content":"Hi"`):  {Text: "Hi", Stop: model.StopEnd},
		`{"choices":{},"usage":5}`:                   {Stop: model.StopEnd},
		`{"choices":[null,5],"usage":null}`:          {Stop: model.StopEnd},
		`{"choices":[{"index":"0","delta":"Hi"}]}`:   {Stop: model.StopEnd},
		"{\"choices\":\ndata: [{\"delta\":null}]}":   {Stop: model.StopEnd},
		`{"usage":{"prompt_tokens_details":"none"}}`: {Stop: model.StopEnd, Usage: &model.Usage{}},
		`{"usage":{"prompt_tokens":"7","completion_tokens":2.0,"prompt_tokens_details":{"cached_tokens":3}}}`: {
			Stop: model.StopEnd, Usage: &model.Usage{InputTokens: 7, OutputTokens: 2, CachedTokens: 3},
		},
	} {
		got, err := hear(t, model.Request{}, chunk, finish("stop"))
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%s: %v, reply differs (-want +got):\n%s", chunk, err, diff)
		}
	}
}

func TestChunkThatIsNotAnObjectFails(t *testing.T) {
	t.Parallel()
	for _, chunk := range []string{`5`, `[]`, `"x"`, ``, `{"choices":`, ` [DONE]`} {
		if got, err := hear(t, model.Request{}, chunk, finish("stop")); err == nil {
			t.Errorf("%s: received %+v", chunk, got)
		}
	}
}

func TestBaseURLKeepsItsPath(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"/v1", "/v1/", "/v1?api-version=1", "/v1/#top"} {
		script := modeltest.Say("ok")
		srv := modeltest.OpenAI(script)
		t.Cleanup(srv.Close)
		m := openai.New(openai.Config{Model: "m", BaseURL: srv.URL + path, HTTPClient: srv.Client()})
		if _, err := modeltest.Read(m.Generate(t.Context(), model.Request{})); err != nil {
			t.Errorf("%s: %v", path, err)
		}
	}
}
