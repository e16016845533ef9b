package tool

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/parley-server/parley/internal/quote"
	"github.com/parley-server/parley/internal/strictjson"
)

// maxName is how many characters of a member's name an error repeats.
const maxName = 100

// Decode parses a call's input into the struct that into points to. Names are matched exactly and
// a member that the struct does not have is an error: the input that an approval shows must not
// mean anything else to the tool. wrong is a sentence for the model, "" if the input is right.
func Decode(input json.RawMessage, into any) (wrong string) {
	e, failed := errors.AsType[*strictjson.Error](strictjson.UnmarshalKnown(input, into))
	if !failed {
		return ""
	}
	name := quote.Argument(strings.TrimPrefix(e.Pointer, "/"), maxName)
	if !strings.HasPrefix(name, `"`) {
		name = `"` + name + `"`
	}
	switch {
	case e.Problem == strictjson.Unknown:
		return "There is no member " + name + ". Names are matched exactly; leave it out."
	case e.Problem == strictjson.Duplicate:
		return "The member " + name + " appears twice. Write it once."
	case e.Problem != strictjson.Type || e.Pointer == "":
		return "The input must be a JSON object."
	case e.Want == "whole number" && e.Got == "number":
		return name + " must be a whole number."
	}
	return fmt.Sprintf("%s must be %s %s, not %s.", name, article(e.Want), e.Want, phrase(e.Got))
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
