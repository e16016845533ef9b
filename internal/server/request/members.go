package request

import (
	"bytes"
	"encoding/json"

	"github.com/parley-server/parley/internal/fault"
)

// The limits of a body's content, besides its size. Without them 8 MiB of members cost 11 s of CPU,
// and 8 MiB of array elements 1.8 s.
const (
	MaxMembers = 10_000  // members of one object
	MaxValues  = 200_000 // values of a body: names of members and elements of arrays
)

// few is the maximum number of names that are compared one by one. A set is faster for more.
const few = 16

// memberScanner scans a body for names that appear twice in one object, and counts values.
type memberScanner struct {
	open   []scope // the objects and arrays around the current byte
	values int
}

// scope is an object or array that is not closed yet.
type scope struct {
	object bool
	names  [][]byte // the first few
	set    map[string]bool
}

// checkMembers rejects a name that appears twice in one object and a body with too many
// values. The body is well-formed and nested at most MaxDepth levels deep.
func checkMembers(body []byte) error {
	var s memberScanner
	name := false // the next string is the name of a member
	for i := 0; i < len(body); i++ {
		var err error
		switch body[i] {
		case '{', '[':
			s.push(body[i] == '{')
			name = body[i] == '{'
		case '}', ']':
			s.open = s.open[:len(s.open)-1]
		case ',':
			name = s.open[len(s.open)-1].object
			err = s.count()
		case ':':
			name = false
		case '"':
			end := stringEnd(body, i)
			if name {
				err = s.member(body[i:end])
			}
			i = end - 1
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// stringEnd returns the index after the JSON string that starts at i.
func stringEnd(body []byte, i int) int {
	for i++; body[i] != '"'; i++ {
		if body[i] == '\\' {
			i++
		}
	}
	return i + 1
}

// push enters an object or array. It reuses the memory of an earlier one at this depth.
func (s *memberScanner) push(object bool) {
	if len(s.open) == cap(s.open) {
		s.open = append(s.open, scope{object: object})
		return
	}
	s.open = s.open[:len(s.open)+1]
	top := &s.open[len(s.open)-1]
	top.object, top.names, top.set = object, top.names[:0], nil
}

// count counts one more value.
func (s *memberScanner) count() error {
	if s.values++; s.values >= MaxValues {
		return fault.New(fault.InvalidJSON, "The body holds more than %d values. Send fewer.", MaxValues)
	}
	return nil
}

// member records the name of a member of the innermost object, as it is quoted in the body.
func (s *memberScanner) member(quoted []byte) error {
	name := quoted[1 : len(quoted)-1]
	if bytes.IndexByte(name, '\\') >= 0 {
		var text string
		if err := json.Unmarshal(quoted, &text); err != nil {
			return fault.New(fault.InvalidJSON, "The body is not JSON: %s.", err)
		}
		name = []byte(text)
	}
	top := &s.open[len(s.open)-1]
	if top.has(name) {
		return fault.New(fault.InvalidJSON, "The name %q appears twice in one object.", Short(string(name)))
	}
	if len(top.set) >= MaxMembers {
		return fault.New(fault.InvalidJSON, "An object has more than %d members. Send fewer.", MaxMembers)
	}
	top.add(name)
	return nil
}

func (s *scope) has(name []byte) bool {
	if s.set != nil {
		return s.set[string(name)]
	}
	for _, n := range s.names {
		if bytes.Equal(n, name) {
			return true
		}
	}
	return false
}

func (s *scope) add(name []byte) {
	if s.set == nil && len(s.names) < few {
		s.names = append(s.names, name)
		return
	}
	if s.set == nil {
		s.set = make(map[string]bool, 2*few)
		for _, n := range s.names {
			s.set[string(n)] = true
		}
	}
	s.set[string(name)] = true
}
