package server

import (
	"strconv"

	"github.com/parley-server/parley/internal/fault"
)

const notCursor = "The cursor is not the id of a frame. Send a whole number of 63 bits without sign, blank or leading zero, such as 1042."

// ParseCursor parses the cursor in the values of a header or parameter; given is false if there is
// none.
func ParseCursor(param string, values []string) (cursor int64, given bool, err error) {
	switch len(values) {
	case 0:
		return 0, false, nil
	case 1:
	default:
		return 0, false, InvalidCursor(param, "The cursor is there more than once.")
	}
	text := values[0]
	if text == "" || text[0] == '0' && text != "0" || text[0] < '0' || text[0] > '9' {
		return 0, false, InvalidCursor(param, notCursor)
	}
	cursor, err = strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0, false, InvalidCursor(param, notCursor)
	}
	return cursor, true, nil
}

// InvalidCursor returns the error of a cursor in a header or parameter.
func InvalidCursor(param, message string) *fault.Error {
	return &fault.Error{Code: fault.InvalidCursor, Message: message, Param: param}
}
