package skill_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/store/skill"
)

const everyType = `    text: {type: string}
    day: {type: string, format: date}
    month: {type: string, format: month}
    count: {type: integer}
    rate: {type: number}
    dry: {type: boolean}
    team: {type: enum, values: [sales, support]}
    words: {type: array, items: {type: string}}
    lines:
      type: array
      items:
        type: object
        properties:
          sku: {type: string, required: true}
          count: {type: integer, default: 1}
    ship:
      type: object
      properties:
        to: {type: string, required: true}
        by: {type: enum, values: [van, bike], default: van}
    extra: {type: object}
`

// inputs parses the members of a JSON object.
func inputs(t testing.TB, object string) map[string]json.RawMessage {
	t.Helper()
	var m map[string]json.RawMessage
	if err := json.Unmarshal([]byte(object), &m); err != nil {
		t.Fatalf("%s: %v", object, err)
	}
	return m
}

// violations returns the violations in an error of Check, as "param rule".
func violations(t testing.TB, err error) []string {
	t.Helper()
	if err == nil {
		return nil
	}
	f := fault.From(err)
	if f == nil || f.Code != fault.InvalidSkillInput || len(f.Detail.Violations) == 0 {
		t.Fatalf("%v", err)
	}
	var list []string
	for _, v := range f.Detail.Violations {
		if v.Message == "" {
			t.Errorf("%s %s lacks a message", v.Param, v.Rule)
		}
		list = append(list, v.Param+" "+v.Rule)
	}
	return list
}

func TestInputsAreHeldAgainstTheContract(t *testing.T) {
	t.Parallel()
	k := parse(t, skillOf(everyType))
	for input, want := range map[string][]string{
		`{}`: nil,
		`{"text":"","day":"2024-02-29","month":"2026-10","count":3,"rate":0.5,"dry":false,"team":"sales","words":[],"lines":[],` +
			`"ship":{"to":"x"},"extra":{"a":[null]}}`: nil,
		`{"text":1}`:                                      {"/input/text type"},
		`{"text":null}`:                                   {"/input/text type"},
		`{"text":["a"]}`:                                  {"/input/text type"},
		`{"day":"2026-02-29"}`:                            {"/input/day format"},
		`{"day":"2026-2-1"}`:                              {"/input/day format"},
		`{"day":"2026-10-01T00:00:00Z"}`:                  {"/input/day format"},
		`{"day":20261001}`:                                {"/input/day type"},
		`{"month":"2026-13"}`:                             {"/input/month format"},
		`{"count":3.0}`:                                   nil,
		`{"count":-30e-1}`:                                nil,
		`{"count":1e999999999999999999999}`:               nil,
		`{"count":0e-999999999999999999999}`:              nil,
		`{"count":123456789012345678901234567890}`:        nil,
		`{"count":1e-999999999999999999999}`:              {"/input/count type"},
		`{"count":3.5}`:                                   {"/input/count type"},
		`{"count":3.05e1}`:                                {"/input/count type"},
		`{"count":35e-1}`:                                 {"/input/count type"},
		`{"count":"3"}`:                                   {"/input/count type"},
		`{"count":true}`:                                  {"/input/count type"},
		`{"rate":1e400}`:                                  nil,
		`{"rate":"0.5"}`:                                  {"/input/rate type"},
		`{"dry":"true"}`:                                  {"/input/dry type"},
		`{"dry":0}`:                                       {"/input/dry type"},
		`{"team":"Sales"}`:                                {"/input/team enum"},
		`{"team":7}`:                                      {"/input/team enum"},
		`{"words":"a"}`:                                   {"/input/words type"},
		`{"words":["a",1,"b",null]}`:                      {"/input/words/1 type", "/input/words/3 type"},
		`{"lines":[{"sku":"a"},{"count":"2"},7]}`:         {"/input/lines/1/sku required", "/input/lines/1/count type", "/input/lines/2 type"},
		`{"lines":[{"sku":1,"colour":"red"}]}`:            {"/input/lines/0/sku type", "/input/lines/0/colour unknown"},
		`{"lines":{"sku":"a"}}`:                           {"/input/lines type"},
		`{"ship":{}}`:                                     {"/input/ship/to required"},
		`{"ship":{"to":"x","by":"train","a/b~c":1}}`:      {"/input/ship/by enum", "/input/ship/a~1b~0c unknown"},
		`{"extra":[]}`:                                    {"/input/extra type"},
		`{"__proto__":{},"constructor":1,"Team":"sales"}`: {"/input/Team unknown", "/input/__proto__ unknown", "/input/constructor unknown"},
		`{"team":"x","count":"y","zzz":1}`:                {"/input/count type", "/input/team enum", "/input/zzz unknown"},
	} {
		if got := violations(t, k.Check(inputs(t, input))); !slices.Equal(got, want) {
			t.Errorf("%s: %q, not %q", input, got, want)
		}
	}
}

func TestRequiredInputsAreNamed(t *testing.T) {
	t.Parallel()
	k := parse(t,
		skillOf("    a: {type: string, required: true}\n    __proto__: {type: integer, required: true}\n    constructor: {type: boolean}\n"))
	err := k.Check(nil)
	if got, want := violations(t, err), []string{"/input/a required", "/input/__proto__ required"}; !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	f := fault.From(err)
	if f.Param != "input/a" || f.Detail.Violations[1].Expected != "integer" || f.Code.Status() != 400 {
		t.Errorf("%+v", f)
	}
	if err := k.Check(inputs(t, `{"a":"","__proto__":1,"constructor":true}`)); err != nil {
		t.Error(err)
	}
}

func TestAViolationShowsTheWayOut(t *testing.T) {
	t.Parallel()
	k := parse(t, skillOf(everyType))
	f := fault.From(k.Check(inputs(t, `{"teem":"sales","team":"x","day":"x","count":"x"}`)))
	got, err := json.Marshal(f.Detail.Violations)
	if err != nil {
		t.Fatal(err)
	}
	want := `[{"param":"/input/day","rule":"format","message":"day must be a date such as 2026-10-31.","expected":"date"},` +
		`{"param":"/input/count","rule":"type","message":"count must be an integer.","expected":"integer"},` +
		`{"param":"/input/team","rule":"enum","message":"team must be one of sales, support.","allowed":["sales","support"]},` +
		`{"param":"/input/teem","rule":"unknown","message":"Unknown input \"teem\". Did you mean \"team\"?",` +
		`"allowed":["text","day","month","count","rate","dry","team","words","lines","ship","extra"],"suggestion":"team"}]`
	if string(got) != want {
		t.Errorf("%s", got)
	}
}

// TestViolationsNeverRepeatAValue puts the same secret in every place for a value.
func TestViolationsNeverRepeatAValue(t *testing.T) {
	t.Parallel()
	const secret = "hunter2"
	k := parse(t, skillOf(everyType))
	for _, value := range []string{`"hunter2"`, `["hunter2"]`, `{"to":{"hunter2":1},"by":"hunter2","sku":["hunter2"]}`,
		`[{"sku":["hunter2"],"count":"hunter2"}]`} {
		input := make(map[string]json.RawMessage)
		for _, in := range k.Contract.Inputs {
			input[in.Name] = raw(value)
		}
		input["other"] = raw(value)
		err := k.Check(input)
		told, jsonErr := json.Marshal(fault.From(err))
		if len(violations(t, err)) < 5 || jsonErr != nil || strings.Contains(string(told), secret) {
			t.Errorf("%s: %s, %v", value, told, jsonErr)
		}
	}
	broken := map[string]json.RawMessage{"text": raw("hunter2"), "a": raw(`{"hunter2"`)}
	for _, k := range []skill.Skill{k, {Name: "open"}} {
		if err := k.Check(broken); err == nil || strings.Contains(err.Error(), secret) {
			t.Errorf("%v", err)
		}
		if prompt, err := k.Prompt(broken); err == nil || strings.Contains(err.Error(), secret) || prompt != "" {
			t.Errorf("%v", err)
		}
	}
}

func TestASkillWithoutAContractTakesAnything(t *testing.T) {
	t.Parallel()
	k := parse(t, "---\nname: a\ndescription: b\n---\nc")
	if err := k.Check(inputs(t, `{"__proto__":null,"":[{}],"x":1e999}`)); err != nil {
		t.Error(err)
	}
	closed := parse(t, "---\nname: a\ndescription: b\ninterface: {inputs: {}}\n---\nc")
	if got := violations(t, closed.Check(inputs(t, `{"x":1}`))); !slices.Equal(got, []string{"/input/x unknown"}) {
		t.Errorf("%q", got)
	}
}

func TestViolationsAreBounded(t *testing.T) {
	t.Parallel()
	k := parse(t, skillOf(everyType))
	input := map[string]json.RawMessage{"words": raw("[" + strings.Repeat("1,", 50_000) + "1]")}
	for i := range 5000 {
		input[fmt.Sprintf("unknown%d", i)] = raw("1")
	}
	if got := violations(t, k.Check(input)); len(got) != 100 {
		t.Errorf("%d violations", len(got))
	}
	f := fault.From(k.Check(map[string]json.RawMessage{strings.Repeat("é", 5000): raw("1")}))
	if v := f.Detail.Violations[0]; v.Param != "/input/"+strings.Repeat("é", 100)+"…" || len(v.Message) > 300 {
		t.Errorf("%+v", v)
	}
	for _, k := range []skill.Skill{k, {Name: "open"}} {
		large := map[string]json.RawMessage{"text": raw(`"` + strings.Repeat("x", skill.MaxInput) + `"`)}
		if got := violations(t, k.Check(large)); !slices.Equal(got, []string{"/input max_length"}) {
			t.Errorf("%q", got)
		}
	}
}
