package event

import (
	"fmt"
	"strconv"
)

// AgentVersion is a version of an agent: a number from 1 or, as 0, a draft.
type AgentVersion int

// draft is the draft in JSON.
const draft = `"draft"`

// MarshalJSON encodes the number, or "draft".
func (v AgentVersion) MarshalJSON() ([]byte, error) {
	if v == 0 {
		return []byte(draft), nil
	}
	return strconv.AppendInt(nil, int64(v), 10), nil
}

// UnmarshalJSON implements json.Unmarshaler.
func (v *AgentVersion) UnmarshalJSON(raw []byte) error {
	if string(raw) == draft {
		*v = 0
		return nil
	}
	n, err := strconv.Atoi(string(raw))
	if err != nil || n < 1 {
		return fmt.Errorf("%s is not a version of an agent", raw)
	}
	*v = AgentVersion(n)
	return nil
}

// String returns the number, or draft.
func (v AgentVersion) String() string {
	if v == 0 {
		return "draft"
	}
	return strconv.Itoa(int(v))
}
