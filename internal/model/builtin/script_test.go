package builtin

import (
	"regexp"
	"testing"

	"github.com/parley-server/parley/docs"
)

func TestEveryDirectiveIsDocumented(t *testing.T) {
	t.Parallel()
	page, err := docs.Files.ReadFile("guides/guide-model.md")
	if err != nil {
		t.Fatal(err)
	}
	documented := make(map[string]bool)
	for _, m := range regexp.MustCompile("(?m)^\\| `@([a-z]+)").FindAllSubmatch(page, -1) {
		documented[string(m[1])] = true
	}
	for name := range directives {
		if !documented[name] {
			t.Errorf("@%s is not in docs/guides/guide-model.md", name)
		}
		delete(documented, name)
	}
	for name := range documented {
		t.Errorf("docs/guides/guide-model.md documents @%s, which is not a directive", name)
	}
	// The example in the guide is a valid script.
	m := regexp.MustCompile("(?s)```\n(@say.*?)```").FindSubmatch(page)
	program, ok := parseScript(string(m[1]))
	if !ok || len(program.steps) != 2 || len(program.steps[0].calls) != 1 {
		t.Errorf("the example is %d steps, %t", len(program.steps), ok)
	}
}
