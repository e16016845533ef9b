package sse_test

import (
	"strings"
	"unicode/utf8"
)

// parsed is a frame as the parser below returns it.
type parsed struct{ event, id, data string }

// parse reads a whole stream as section 9.2.6 of the HTML standard requires. It shares no code with
// Reader: it splits the stream as one string.
func parse(stream string) (frames []parsed, lastID string) {
	stream = strings.TrimPrefix(stream, "\uFEFF")
	stream = strings.ReplaceAll(stream, "\r\n", "\n")
	stream = strings.ReplaceAll(stream, "\r", "\n")
	lines := strings.Split(stream, "\n")
	lines = lines[:len(lines)-1] // text without a line ending is not a line
	var event, data, id string
	for _, line := range lines {
		if line == "" {
			lastID = id
			if data != "" {
				if event == "" {
					event = "message"
				}
				frames = append(frames, parsed{event, id, strings.TrimSuffix(data, "\n")})
			}
			event, data = "", ""
			continue
		}
		field, value := line, ""
		if i := strings.IndexByte(line, ':'); i == 0 {
			continue
		} else if i > 0 {
			field, value = line[:i], strings.TrimPrefix(line[i+1:], " ")
		}
		switch field {
		case "event":
			event = value
		case "data":
			data += value + "\n"
		case "id":
			if !strings.Contains(value, "\x00") {
				id = value
			}
		}
	}
	return frames, lastID
}

// carried reports whether a frame can be sent unchanged.
func carried(event, data string) bool {
	return event != "" && !strings.ContainsAny(event, "\r\n") && !strings.Contains(data, "\r") &&
		utf8.ValidString(event) && utf8.ValidString(data)
}
