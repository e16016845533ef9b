package session

import (
	"encoding/base64"
	"encoding/binary"
	"hash/crc32"
	"math"
	"time"

	"github.com/google/uuid"

	"github.com/parley-server/parley/internal/fault"
)

// A list cursor is opaque to callers. It contains the list, its order, the place of the last row,
// and a checksum that also covers the owner of the list. The checksum detects mistakes; only the
// query decides what a caller may see.
const (
	sessionsList  byte = 's'
	messagesList  byte = 'm'
	messagesAsOf  byte = 'o'
	approvalsList byte = 'a'
	turnsList     byte = 't'
	erasuresList  byte = 'e'
)

var cursors = base64.RawURLEncoding.Strict()

// place is the position at which a page ended.
type place struct {
	list    byte
	reverse bool // not the list's usual order
	n       int64
	id      uuid.UUID
}

const placeLen = 1 + 1 + 8 + 16

func (p place) encodeCursor(owner uuid.UUID) string {
	b := make([]byte, 0, placeLen+crc32.Size)
	b = append(b, p.list, 0)
	if p.reverse {
		b[1] = 1
	}
	b = binary.BigEndian.AppendUint64(b, uint64(p.n))
	b = append(b, p.id[:]...)
	return cursors.EncodeToString(binary.BigEndian.AppendUint32(b, cursorChecksum(b, owner)))
}

// decodeCursor decodes a cursor of the same list, order and owner.
func (p place) decodeCursor(text string, owner uuid.UUID) (place, error) {
	if len(text) != cursors.EncodedLen(placeLen+crc32.Size) {
		return p, badCursor()
	}
	b, err := cursors.DecodeString(text)
	if err != nil || len(b) != placeLen+crc32.Size || binary.BigEndian.Uint32(b[placeLen:]) != cursorChecksum(b[:placeLen], owner) ||
		b[0] != p.list || (b[1] == 1) != p.reverse {
		return p, badCursor()
	}
	p.n = int64(binary.BigEndian.Uint64(b[2:]))
	p.id = uuid.UUID(b[10:placeLen])
	return p, nil
}

func badCursor() error {
	return &fault.Error{Code: fault.InvalidCursor, Param: "cursor",
		Message: "This cursor does not belong to this list in this order. Take next_cursor of the page before, or begin without a cursor."}
}

// maxMicro is the end of the year 9999: PostgreSQL rejects much later times.
const maxMicro = 253402300799_999999

func cursorChecksum(b []byte, owner uuid.UUID) uint32 {
	return crc32.Update(crc32.ChecksumIEEE(b), crc32.IEEETable, owner[:])
}

func (q SummaryQuery) nextCursor(workspace uuid.UUID, last Summary) string {
	return place{sessionsList, q.OldestFirst, last.UpdatedAt.UnixMicro(), last.SessionID}.encodeCursor(workspace)
}

// startPosition returns the position at which the page begins; nil is the beginning.
func (q SummaryQuery) startPosition(workspace uuid.UUID) (*time.Time, uuid.UUID, error) {
	return decodeTimeCursor(place{list: sessionsList, reverse: q.OldestFirst}, q.Cursor, workspace)
}

// decodeTimeCursor decodes the cursor of a list that is ordered by time.
func decodeTimeCursor(p place, cursor string, owner uuid.UUID) (*time.Time, uuid.UUID, error) {
	if cursor == "" {
		return nil, uuid.Nil, nil
	}
	p, err := p.decodeCursor(cursor, owner)
	if err == nil && (p.n < 0 || p.n > maxMicro) {
		err = badCursor()
	}
	return new(time.UnixMicro(p.n)), p.id, err
}

func (q ApprovalQuery) nextCursor(workspace uuid.UUID, last Approval) string {
	return place{approvalsList, false, last.CreatedAt.UnixMicro(), last.ApprovalID}.encodeCursor(workspace)
}

func (q ApprovalQuery) startPosition(workspace uuid.UUID) (*time.Time, uuid.UUID, error) {
	return decodeTimeCursor(place{list: approvalsList}, q.Cursor, workspace)
}

func (q MessageQuery) nextCursor(session uuid.UUID, last Message) string {
	p := q.firstPlace()
	p.n = last.FirstSeq
	return p.encodeCursor(session)
}

// firstPlace is the place before the first page. Its id is that of the event of which the list is, so
// a cursor belongs to one list.
func (q MessageQuery) firstPlace() place {
	p := place{list: messagesList, reverse: q.NewestFirst}
	if q.NewestFirst {
		p.n = math.MaxInt64
	}
	if q.AsOf != nil {
		p.list = messagesAsOf
		binary.BigEndian.PutUint64(p.id[8:], uint64(*q.AsOf))
	}
	return p
}

func (q MessageQuery) startPosition(session uuid.UUID) (int64, error) {
	first := q.firstPlace()
	if q.Cursor == "" {
		return first.n, nil
	}
	p, err := first.decodeCursor(q.Cursor, session)
	if err == nil && p.list == messagesAsOf && p.id != first.id {
		err = badCursor()
	}
	return p.n, err
}
