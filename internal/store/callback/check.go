package callback

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/parley-server/parley/internal/egress"
	"github.com/parley-server/parley/internal/fault"
	"github.com/parley-server/parley/internal/text"
)

// The limits of metadata, in pairs and characters.
const (
	MaxMetadata      = 16
	MaxMetadataKey   = 40
	MaxMetadataValue = 500
)

// Check rejects an invalid callback: INVALID_CALLBACK_URL, or INVALID_REQUEST with every violation
// of the metadata.
func (s *Store) Check(url string, metadata map[string]string) error {
	if err := s.guard.CheckURL(url); err != nil {
		refused, ok := errors.AsType[*egress.Error](err)
		if !ok {
			return err
		}
		return &fault.Error{Code: fault.InvalidCallbackURL, Param: "callback/url", Message: refused.Reason}
	}
	if vs := checkMetadata(metadata); len(vs) > 0 {
		return fault.Invalid(vs...)
	}
	return nil
}

func checkMetadata(metadata map[string]string) (vs []fault.Violation) {
	const param = "/callback/metadata"
	if len(metadata) > MaxMetadata {
		return []fault.Violation{{Param: param, Rule: "max_properties", Message: fmt.Sprintf("metadata has more than %d pairs.",
			MaxMetadata), Expected: MaxMetadata}}
	}
	for _, key := range slices.Sorted(maps.Keys(metadata)) {
		value := metadata[key]
		if key == "" || utf8.RuneCountInString(key) > MaxMetadataKey || !text.IsStorable(key) {
			vs = append(vs, fault.Violation{Param: param, Rule: "property_names",
				Message: fmt.Sprintf("A key of metadata has 1 to %d characters.", MaxMetadataKey), Expected: MaxMetadataKey})
			continue
		}
		at := param + "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(key)
		if utf8.RuneCountInString(value) > MaxMetadataValue {
			vs = append(vs, fault.Violation{Param: at, Rule: "max_length",
				Message: fmt.Sprintf("A value of metadata has at most %d characters.", MaxMetadataValue), Expected: MaxMetadataValue})
		}
		if !text.IsStorable(value) {
			vs = append(vs, fault.Violation{Param: at, Rule: "format", Message: "A value of metadata is UTF-8 without NUL."})
		}
	}
	return vs
}
