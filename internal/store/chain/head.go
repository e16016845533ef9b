package chain

import (
	"bufio"
	"bytes"
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

// ParseHeads reads heads as JSON objects. An object may continue on the next lines, up to a line that
// begins with another one. An object without its end is a write that a crash has cut off: torn has the
// number of its first line.
func ParseHeads(r io.Reader) (heads []Head, torn []int, err error) {
	var record []byte
	first := 1
	closeRecord := func() error {
		parsed, cut, err := parseRecord(record)
		if err != nil {
			return fmt.Errorf("line %d %w", first, err)
		}
		heads = append(heads, parsed...)
		if cut {
			torn = append(torn, first)
		}
		return nil
	}
	lines, more := bufio.NewReader(r), true
	for n := 1; more; n++ {
		line, err := lines.ReadBytes('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, nil, err
		}
		more = err == nil
		if bytes.HasPrefix(bytes.TrimSpace(line), []byte("{")) {
			if err := closeRecord(); err != nil {
				return nil, nil, err
			}
			record, first = record[:0], n
		}
		record = append(record, line...)
	}
	return heads, torn, closeRecord()
}

// parseRecord parses the objects of a record; cut reports that the last one has no end.
func parseRecord(record []byte) (heads []Head, cut bool, err error) {
	d := json.NewDecoder(bytes.NewReader(bytes.TrimSpace(record)))
	for {
		var h Head
		switch err := d.Decode(&h); {
		case errors.Is(err, io.EOF):
			return heads, false, nil
		case errors.Is(err, io.ErrUnexpectedEOF):
			return heads, true, nil
		case err != nil:
			return nil, false, fmt.Errorf("is not a JSON object: %w", err)
		case h.Number < 1 || len(h.Hash) != digestSize || h.Key == "":
			return nil, false, errors.New("has no number, hash or key")
		}
		heads = append(heads, h)
	}
}

// compareHeads compares the chain with heads that were stored elsewhere. Each replica stores the
// newest head, so the same one can be in several places.
func (v *verifier) compareHeads(ctx context.Context) error {
	all := uniqueHeads(v.Heads)
	for start := 0; start < len(all); start += pageLinks {
		heads := all[start:min(start+pageLinks, len(all))]
		numbers := make([]int64, len(heads))
		for i, h := range heads {
			numbers[i] = h.Number
		}
		rows, err := v.q.ChainHashes(ctx, numbers)
		if err != nil {
			return err
		}
		stored := make(map[int64][]byte, len(rows))
		for _, r := range rows {
			stored[r.Number] = r.Hash
		}
		for _, h := range heads {
			if err := v.compareHead(h, stored[h.Number]); err != nil {
				return err
			}
		}
	}
	return nil
}

// uniqueHeads returns the heads without repetitions, in their order.
func uniqueHeads(heads []Head) []Head {
	seen, all := make(map[string]bool, len(heads)), make([]Head, 0, len(heads))
	for _, h := range heads {
		id := fmt.Sprintf("%d %x %s %x", h.Number, h.Hash, h.Key, h.Signature)
		if !seen[id] {
			seen[id], all = true, append(all, h)
		}
	}
	return all
}

func (v *verifier) compareHead(h Head, stored []byte) error {
	v.sum.Heads++
	text := ""
	switch {
	case !v.Keys.verifyHead(h.Key, h.Number, h.Hash, h.Signature):
		text = fmt.Sprintf("The anchored head of link %d was not signed by a trusted key. It names the key %s.", h.Number, h.Key)
	case stored == nil:
		text = fmt.Sprintf(
			"Link %d was anchored on %s, and the database does not have it. The end of the log was removed, or the database was "+
				"restored from an older backup.",
			h.Number, h.At.UTC().Format(time.RFC3339))
	case !bytes.Equal(stored, h.Hash):
		text = fmt.Sprintf("Link %d differs from the head that was anchored on %s. The log was rewritten before that link.", h.Number,
			h.At.UTC().Format(time.RFC3339))
	default:
		return nil
	}
	return v.report(Finding{Kind: Anchor, Link: h.Number, Text: text})
}
