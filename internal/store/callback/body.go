package callback

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
)

// Delivery is a report to be sent.
type Delivery struct {
	ID, Callback, Workspace, Session, Turn uuid.UUID

	Type     Type
	Seq      int64     // seq of the event
	At       time.Time // time of the event, by PostgreSQL's clock
	Protocol Protocol
}

// wrapBody makes the body of a report from its data, a JSON object, to which it adds the ids of the
// workspace and the turn, the seq and the metadata.
func wrapBody(d Delivery, data []byte, metadata json.RawMessage) ([]byte, error) {
	var inner bytes.Buffer
	if err := json.Compact(&inner, data); err != nil {
		return nil, fmt.Errorf("read the data of a report: %w", err)
	}
	open, isObject := bytes.CutSuffix(inner.Bytes(), []byte("}"))
	if !isObject {
		return nil, errors.New("the data of a report are no object")
	}
	more, err := json.Marshal(struct {
		Workspace uuid.UUID       `json:"workspace_id"`
		Turn      uuid.UUID       `json:"turn_id"`
		Seq       int64           `json:"seq"`
		Metadata  json.RawMessage `json:"metadata"`
	}{d.Workspace, d.Turn, d.Seq, metadata})
	if err != nil {
		return nil, fmt.Errorf("encode a report: %w", err)
	}
	joint := []byte(",")
	if len(open) == 1 {
		joint = nil
	}
	body, err := json.Marshal(struct {
		Type Type            `json:"type"`
		At   time.Time       `json:"timestamp"`
		Data json.RawMessage `json:"data"`
	}{d.Type, d.At.UTC(), bytes.Join([][]byte{open, more[1:]}, joint)})
	if err != nil {
		return nil, fmt.Errorf("encode a report: %w", err)
	}
	return body, nil
}
