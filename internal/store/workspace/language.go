package workspace

import (
	"fmt"
	"slices"
	"strings"

	"github.com/parley-server/parley/internal/fault"
)

// SearchLanguages are the languages in which a workspace searches its documents: text search
// configurations of PostgreSQL. "simple" reduces no word to its stem.
var SearchLanguages = []string{
	"arabic", "danish", "dutch", "english", "finnish", "french", "german", "hungarian", "indonesian", "irish", "italian",
	"lithuanian", "nepali", "norwegian", "portuguese", "romanian", "russian", "simple", "spanish", "swedish", "tamil", "turkish",
}

func (c Change) languageViolations() []fault.Violation {
	if c.SearchLanguage == nil || slices.Contains(SearchLanguages, *c.SearchLanguage) {
		return nil
	}
	return []fault.Violation{{Param: "/search_language", Rule: "enum",
		Message:  fmt.Sprintf("%.40q is not a language of the search. Use %s.", *c.SearchLanguage, strings.Join(SearchLanguages, ", ")),
		Expected: SearchLanguages}}
}
