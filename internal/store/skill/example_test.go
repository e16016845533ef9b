package skill_test

import (
	"encoding/json"
	"testing"

	"github.com/parley-server/parley/internal/store/skill"
)

// TestExamplesAreTaken: the example in a contract is an input that the contract accepts.
func TestExamplesAreTaken(t *testing.T) {
	t.Parallel()
	if got := (*skill.Contract)(nil).Example(); len(got) != 0 {
		t.Errorf("%v", got)
	}
	const inputs = `
    text: {type: string, required: true}
    month: {type: string, format: month, required: true}
    date: {type: string, format: date, required: true}
    count: {type: integer, required: true}
    share: {type: number, required: true}
    dry: {type: boolean, required: true}
    team: {type: enum, values: [sales, support], required: true}
    words: {type: array, items: {type: string, format: date}, required: true}
    address: {type: object, required: true, properties: {street: {type: string, required: true}, floor: {type: integer}}}
    other: {type: string}`
	k, problems := skill.Parse("---\nname: all\ndescription: Has all.\ninterface:\n  inputs:" + inputs + "\n---\nDo it.\n")
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	raw, err := json.Marshal(k.Contract.Example())
	if err != nil {
		t.Fatal(err)
	}
	var given map[string]json.RawMessage
	if err := json.Unmarshal(raw, &given); err != nil || len(given) != 9 {
		t.Errorf("%s %v", raw, err)
	}
	if err := k.Check(given); err != nil {
		t.Errorf("%s: %v", raw, err)
	}
}
