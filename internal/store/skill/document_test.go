package skill_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-server/parley/internal/store/skill"
)

// parse parses a valid SKILL.md.
func parse(t testing.TB, document string) skill.Skill {
	t.Helper()
	k, problems := skill.Parse(document)
	if len(problems) > 0 {
		t.Fatalf("%v\n%s", problems, document)
	}
	return k
}

// skillOf returns a SKILL.md with these inputs, which are indented by two blanks.
func skillOf(inputs string) string {
	return "---\nname: order\ndescription: Orders.\ninterface:\n  inputs:\n" + inputs + "---\nOrder it.\n"
}

func TestASkillIsReadWhole(t *testing.T) {
	t.Parallel()
	got := parse(t, "\uFEFF---\r\nname: Monthly_Report\r\n"+`description: >-
  What happened
  in a month.
license: Apache-2.0
allowed-tools: [wiki_read, grep]
metadata: {author: anna, version: "1.0", nested: &a {b: [1, *a]}}
interface:
  inputs:
    since: {type: string, format: date, default: 2026-10-01, description: The first day.}
    month: {type: string, format: month, required: true}
    team:
      type: enum
      values: [sales, "on", "2"]
      default: "on"
    top: {type: integer, default: 12345678901234567890123}
    rate: {type: number, default: 1.50}
    dry: {type: boolean, default: True}
    items:
      type: array
      items:
        type: object
        properties:
          sku: {type: string, required: true}
          count: {type: integer, default: 1}
    words: {type: array, items: {type: string}, default: [a, "<b>"]}
    extra: {type: object, default: {a: [1, {b: no}]}}
--- `+"\n\n# Report\n\n---\nNot YAML any more.\r\n\n")
	want := skill.Skill{
		Name: "Monthly_Report", Description: "What happened in a month.", Body: "# Report\n\n---\nNot YAML any more.",
		Contract: &skill.Contract{Inputs: []skill.Input{
			{Name: "since", Type: skill.String, Format: "date", Default: raw(`"2026-10-01"`), Description: "The first day."},
			{Name: "month", Type: skill.String, Format: "month", Required: true},
			{Name: "team", Type: skill.Enum, Values: []string{"sales", "on", "2"}, Default: raw(`"on"`)},
			{Name: "top", Type: skill.Integer, Default: raw(`12345678901234567890123`)},
			{Name: "rate", Type: skill.Number, Default: raw(`1.50`)},
			{Name: "dry", Type: skill.Boolean, Default: raw(`true`)},
			{Name: "items", Type: skill.Array, Items: &skill.Input{Type: skill.Object, Properties: []skill.Input{
				{Name: "sku", Type: skill.String, Required: true},
				{Name: "count", Type: skill.Integer, Default: raw(`1`)},
			}}},
			{Name: "words", Type: skill.Array, Items: &skill.Input{Type: skill.String}, Default: raw(`["a","\u003cb\u003e"]`)},
			{Name: "extra", Type: skill.Object, Default: raw(`{"a":[1,{"b":"no"}]}`)},
		}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func raw(s string) json.RawMessage { return json.RawMessage(s) }

func TestASkillWithoutAContractHasNone(t *testing.T) {
	t.Parallel()
	if k := parse(t, "---\nname: a\ndescription: b\n---\nc"); k.Contract != nil {
		t.Errorf("%+v", k.Contract)
	}
	if k := parse(t, "---\nname: a\ndescription: b\ninterface:\n  inputs: {}\n---\nc"); k.Contract == nil || len(k.Contract.Inputs) != 0 {
		t.Errorf("%+v", k.Contract)
	}
}

func TestEveryProblemIsToldWithItsLine(t *testing.T) {
	t.Parallel()
	for document, want := range map[string][]string{
		"":                {"line 1: A SKILL.md begins with"},
		"# Only Markdown": {"line 1: A SKILL.md begins with"},
		"---\nname: a\n":  {"line 1: A SKILL.md begins with"},
		"---\n---\n": {"line 2: The name is missing", "line 2: The description is missing",
			"line 3: The instructions are missing"},
		"---\nname: a\n description: b\n---\nc": {"line 3: This is not YAML: mapping values"},
		"---\nname: [\n---\nc":                  {"This is not YAML"},
		"---\n- a\n---\nc": {"is not names with values", "line 2: The name is missing",
			"The description is missing"},
		"---\nname: a\ndescription: b\n...\nmore: c\n---\nd":                   {"line 2: There is more than one YAML document"},
		"---\nname: a\nname: b\ndescription: c\n---\nd":                        {"line 3: name is there twice"},
		"---\nname: 7\ndescription: true\n---\nc":                              {"line 2: name is text", "line 3: description is text"},
		"---\nname: Größe\ndescription: ''\n---\nc":                            {"line 2: A name is", "line 3: A description is"},
		"---\nname: ＡＢ\ndescription: c\n---\nd":                                {"line 2: A name is"},
		"---\nname: a--b\ndescription: \"a\\0b\"\n---\nc":                      {"line 2: A name is", "line 3: A description is"},
		"---\nname: a\ndescription: " + strings.Repeat("x", 1025) + "\n---\nb": {"line 3: A description is"},
		"---\nname: a\ndescription: b\ninputs: {}\n---\nc":                     {`line 4: "inputs" is not understood`},
		"---\nname: a\ndescription: b\ninterfaces: {}\n---\nc":                 {`line 4: "interfaces" is not understood`},
		"---\nname: a\ndescription: b\ninterface: {}\n---\nc":                  {"line 4: interface has no inputs"},
		"---\nname: a\ndescription: b\ninterface: []\n---\nc":                  {"line 4: interface is not names with values"},
		"---\nname: a\ndescription: b\ninterface: {input: {}}\n---\nc": {
			"line 4: \"input\" is not understood. Did you mean inputs?"},
		"---\nname: a\ndescription: \xff\n---\nc":                                      {"line 1: A SKILL.md is UTF-8"},
		"---\nname: a\ndescription: b\n---\nc\x00":                                     {"line 1: A SKILL.md is UTF-8"},
		"---\nname: a\ndescription: b\n---\n" + strings.Repeat("c", skill.MaxDocument): {"line 1: A SKILL.md is at most"},

		skillOf("    a: string\n"): {
			"line 6: a is not names with values"},
		skillOf("    a: {}\n    b: {type: text}\n"): {
			"line 6: a has no type", `line 7: Unknown type "text"`},
		skillOf("    a: {type: [string]}\n"): {
			"line 6: type is text"},
		skillOf("    a b: {type: string}\n    '': {type: string}\n"): {
			"line 6: The name of an input", "line 7: The name of an input"},
		skillOf("    a: {type: string}\n    a: {type: string}\n"): {
			"line 7: a is there twice"},
		skillOf("    1: {type: string}\n"): {
			"line 6: A name is text"},
		skillOf("    a: {type: string, requird: true}\n"): {
			`"requird" is not understood. Did you mean required?`},
		skillOf("    a: {type: string, required: yes}\n"): {
			"line 6: required is true or false"},
		skillOf("    a: {type: string, required: [b]}\n"): {
			"line 6: required is true or false"},
		skillOf("    a: {type: string, required: true, default: x}\n"): {
			"line 6: a is required"},
		skillOf("    a: {type: string, default: 7}\n"): {
			"line 6: default must be a string"},
		skillOf("    a: {type: integer, default: 7.5}\n"): {
			"line 6: default must be an integer"},
		skillOf("    a: {type: integer, default: 0x10}\n"): {
			"line 6: This default has no counterpart in JSON"},
		skillOf("    a: {type: number, default: .inf}\n"): {
			"line 6: This default has no counterpart in JSON"},
		skillOf("    a: {type: string, default: }\n"): {
			"line 6: This default has no counterpart in JSON"},
		skillOf("    a: {type: object, default: {1: a}}\n"): {
			"line 6: A name is text"},
		skillOf("    a: {type: object, default: {b: c, b: c}}\n"): {
			"line 6: b is there twice"},
		skillOf("    a: {type: object, default: " + strings.Repeat("{a: ", 30) + "1" + strings.Repeat("}", 30) + "}\n"): {
			"line 6: A default is nested"},
		skillOf("    a: {type: string, format: time}\n"): {
			`line 6: Unknown format "time"; it is one of date, month`},
		skillOf("    a: {type: string, format: date, default: soon}\n"): {
			"line 6: default must be a date such as"},
		skillOf("    a: {type: integer, values: [a], format: date}\n"): {
			"format belongs to the type string", "values belongs to the type enum"},
		skillOf("    a: {type: enum}\n"): {
			"line 6: a is an enum without values"},
		skillOf("    a: {type: enum, values: a}\n"): {
			"line 6: values is a list"},
		skillOf("    a: {type: enum, values: []}\n"): {
			"line 6: values is a list"},
		skillOf("    a:\n      type: enum\n      values:\n      - 2026\n      - a\n      - a\n      - ''\n"): {
			"line 9: A value of an enum is text", `line 11: The value "a" is there twice`, "line 12: A value of an enum is 1 to"},
		skillOf("    a: {type: enum, values: [b, c], default: d}\n"): {
			"line 6: default must be one of b, c"},
		skillOf("    a: {type: array}\n"): {
			"line 6: a is an array without items"},
		skillOf("    a: {type: array, items: {type: array, items: {type: string}}}\n"): {
			"line 6: The items of an array are no arrays"},
		skillOf("    a: {type: array, items: {type: string, required: true}}\n"): {
			`"required" is not understood`},
		skillOf("    a: {type: array, items: {type: enum}}\n"): {
			"is an enum without values"},
		skillOf("    a: {type: array, items: {type: integer}, default: [1, b]}\n"): {
			"line 6: default/1 must be an integer"},
		skillOf("    a: &a {type: string}\n    b: *a\n"): {
			"line 7: b is not names with values"},
		skillOf("    a: {type: string, required: &t true}\n    b: {type: string, required: *t}\n"): {
			"line 7: required is true or false"},
		skillOf("    <<: {a: {type: string}}\n"): {
			"line 6: A name is text"},
		skillOf("    a: " + strings.Repeat("{type: object, properties: {a: ", 6) + "{type: string}" + strings.Repeat("}}", 6) + "\n"): {
			"line 6: Inputs are nested at most"},
	} {
		_, problems := skill.Parse(document)
		if len(problems) != len(want) {
			t.Errorf("%.300q:\nhas %v\nnot %v", document, problems, want)
			continue
		}
		for i, p := range problems {
			if !strings.Contains(p.String(), want[i]) {
				t.Errorf("%.300q:\nhas %v\nnot %v", document, p, want[i])
			}
		}
	}
}

func TestAContractHasABound(t *testing.T) {
	t.Parallel()
	var inputs strings.Builder
	for i := range 150 {
		fmt.Fprintf(&inputs, "    a%d: {type: string}\n", i)
	}
	_, problems := skill.Parse(skillOf(inputs.String()))
	if len(problems) != 1 || problems[0].Line != 106 || !strings.Contains(problems[0].Message, "at most 100 inputs") {
		t.Errorf("%v", problems)
	}
}

func TestTheTemplateIsASkill(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"monthly_report", "a", "Onboarding-Checklist"} {
		if k := parse(t, skill.Template(name)); k.Name != name || k.Contract == nil || len(k.Contract.Inputs) == 0 {
			t.Errorf("%+v", k)
		}
	}
}
