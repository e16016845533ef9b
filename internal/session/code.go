package session

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// Code identifies an approval in a chat, where users type it: the last 30 bits of the approval's
// id, which are random. It is bound to the approval, but it is not a secret.
type Code uint32

const (
	codeLength   = 6
	codeBits     = 30
	codeAlphabet = "0123456789ABCDEFGHJKMNPQRSTVWXYZ" // Crockford's: without I, L, O and U
)

// CodeOf returns the code of an approval.
func CodeOf(approval uuid.UUID) Code {
	return Code(binary.BigEndian.Uint32(approval[12:]) & (1<<codeBits - 1))
}

// String returns the code as a user types it.
func (c Code) String() string {
	var text [codeLength]byte
	for i := range text {
		text[i] = codeAlphabet[c>>(codeBits-5*(i+1))&31]
	}
	return string(text[:])
}

// ParseCode parses a code in upper or lower case, with or without hyphens. O is read as 0, and I
// and L as 1.
func ParseCode(text string) (c Code, ok bool) {
	text = strings.NewReplacer("-", "", "O", "0", "I", "1", "L", "1").Replace(strings.ToUpper(text))
	if len(text) != codeLength {
		return 0, false
	}
	for i := range text {
		digit := strings.IndexByte(codeAlphabet, text[i])
		if digit < 0 {
			return 0, false
		}
		c = c<<5 | Code(digit)
	}
	return c, true
}

// ApprovalByCode returns the approval of a session that has this code; ok is false if there is
// none.
func (s *Store) ApprovalByCode(ctx context.Context, workspace, session uuid.UUID, code Code) (a Approval, ok bool, err error) {
	id, err := s.q.ApprovalCoded(ctx, workspace, session, int64(code))
	if errors.Is(err, pgx.ErrNoRows) {
		return a, false, nil
	}
	if err != nil {
		return a, false, fmt.Errorf("find approval by code: %w", err)
	}
	a, err = s.Approval(ctx, workspace, id)
	return a, err == nil, err
}

// KeyApprovalByCode returns the approval of the last day that has a code, among the sessions
// without a caller_id to which an API key sent messages; ok is false if there is none, or if two
// have the code.
func (s *Store) KeyApprovalByCode(ctx context.Context, workspace uuid.UUID, key string, code Code) (a Approval, ok bool, err error) {
	ids, err := s.q.ApprovalsCoded(ctx, workspace, key, int64(code))
	if err != nil {
		return a, false, fmt.Errorf("find approval of a key by code: %w", err)
	}
	if len(ids) != 1 {
		return a, false, nil
	}
	a, err = s.Approval(ctx, workspace, ids[0])
	return a, err == nil, err
}

// ApprovalSender returns the API key that sent the message of an approval, and whether its session
// has a caller_id; ok is false if the approval does not exist.
func (s *Store) ApprovalSender(ctx context.Context, workspace, approval uuid.UUID) (key string, named, ok bool, err error) {
	row, err := s.q.ApprovalSender(ctx, workspace, approval)
	if errors.Is(err, pgx.ErrNoRows) {
		return "", false, false, nil
	}
	if err != nil {
		return "", false, false, fmt.Errorf("read sender of approval: %w", err)
	}
	return row.Key, row.CallerID != nil, true, nil
}
