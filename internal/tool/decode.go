package tool

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/parley-server/parley/internal/strictjson"
	"github.com/parley-server/parley/internal/text/render"
)

// maxName is how many characters of a member's name an error repeats.
const maxName = 100

// Decode parses a call's input into the struct that into points to. Names are matched exactly, and
// a member that the struct does not have is an error: the input that an approval shows must not
// have another meaning for the tool. wrong is a sentence for the model, "" if the input is valid.
func Decode(input json.RawMessage, into any) (wrong string) {
	e, failed := errors.AsType[*strictjson.Error](strictjson.UnmarshalKnown(input, into))
	if !failed {
		return ""
	}
	name := quoted(strings.TrimPrefix(e.Pointer, "/"))
	switch {
	case e.Problem == strictjson.Unknown:
		return unknown(name)
	case e.Problem == strictjson.Duplicate:
		return "The member " + name + " appears twice. Write it once."
	case e.Problem != strictjson.Type || e.Pointer == "":
		return "The input must be a JSON object."
	case e.Want == "whole number" && e.Got == "number":
		return name + " must be a whole number."
	}
	return fmt.Sprintf("%s must be %s %s, not %s.", name, article(e.Want), e.Want, phrase(e.Got))
}

// Unknown returns a sentence for the model if the input has a member that the schema of a tool does
// not have, and "" otherwise. Such a call cannot run, so it needs no approval.
func Unknown(schema, input json.RawMessage) (wrong string) {
	var known struct {
		Properties map[string]json.RawMessage
		Additional json.RawMessage `json:"additionalProperties"`
	}
	var given map[string]json.RawMessage
	if json.Unmarshal(schema, &known) != nil || string(known.Additional) != "false" || strictjson.Unmarshal(input, &given) != nil {
		return ""
	}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if _, ok := known.Properties[name]; !ok {
			return unknown(quoted(name))
		}
	}
	return ""
}

func quoted(name string) string {
	name = render.Argument(name, maxName)
	if !strings.HasPrefix(name, `"`) {
		name = `"` + name + `"`
	}
	return name
}

func unknown(name string) string {
	return "Unknown member " + name + ". Names are matched exactly; leave it out."
}

func phrase(kind string) string {
	if kind == "null" {
		return kind
	}
	return article(kind) + " " + kind
}

func article(noun string) string {
	if strings.ContainsAny(noun[:1], "aeiou") {
		return "an"
	}
	return "a"
}
