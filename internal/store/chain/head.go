package chain

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/jackc/pgx/v5"
)

// Head is the end of the chain at a time, as it is stored outside of the database. It covers all
// links before it, so the owner of the database cannot change them unnoticed.
type Head struct {
	Number    int64     `json:"number"`
	Hash      []byte    `json:"hash"`
	At        time.Time `json:"at"`
	Key       string    `json:"key"`
	Signature []byte    `json:"signature"`
}

// Head returns the newest link; ok is false if there is none.
func (s *Store) Head(ctx context.Context) (h Head, ok bool, err error) {
	row, err := s.q.ChainHead(ctx)
	if errors.Is(err, pgx.ErrNoRows) {
		return h, false, nil
	}
	if err != nil {
		return h, false, fmt.Errorf("read the head of the chain: %w", err)
	}
	return Head{row.Number, row.Hash, row.At.UTC(), row.KeyID, row.Signature}, true, nil
}

// ParseHeads reads heads, one JSON object after the other.
func ParseHeads(r io.Reader) (heads []Head, err error) {
	d := json.NewDecoder(bufio.NewReader(r))
	for {
		var h Head
		switch err := d.Decode(&h); {
		case errors.Is(err, io.EOF):
			return heads, nil
		case err != nil:
			return nil, fmt.Errorf("head %d is not a JSON object: %w", len(heads)+1, err)
		case h.Number < 1 || len(h.Hash) != digestSize || h.Key == "":
			return nil, fmt.Errorf("head %d has no number, hash or key", len(heads)+1)
		}
		heads = append(heads, h)
	}
}
