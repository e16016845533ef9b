package server

import (
	"strconv"

	"github.com/parley-server/parley/internal/fault"
)

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
		return 0, false, InvalidCursor(param, "The cursor is the id of a frame: 0, or a decimal number without sign, blank or leading zero.")
	}
	cursor, err = strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0, false, InvalidCursor(param, "The cursor is the id of a frame: 0, or a decimal number that fits 63 bits.")
	}
	return cursor, true, nil
}

// InvalidCursor returns the error of a cursor in a header or parameter.
func InvalidCursor(param, message string) *fault.Error {
	return &fault.Error{Code: fault.InvalidCursor, Message: message, Param: param}
}
