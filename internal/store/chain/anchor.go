package chain

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"time"
)

// anchorEvery is the pause between two heads in the file of Options.Heads.
const anchorEvery = time.Minute

// anchor appends heads to a file, so that the owner of the database cannot rewrite the log unseen.
type anchor struct {
	path   string
	number int64     // of the newest head in the file
	at     time.Time // when it was written
}

// appendHead appends the newest head, unless the file has it, or has had another one for less than a
// minute.
func (s *Store) appendHead(ctx context.Context, a *anchor) error {
	if a.path == "" || time.Since(a.at) < anchorEvery {
		return nil
	}
	h, ok, err := s.Head(ctx)
	if err != nil || !ok || h.Number == a.number {
		return err
	}
	line, err := json.Marshal(h)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(a.path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o640)
	if err != nil {
		return fmt.Errorf("store a head of the chain: %w", err)
	}
	defer f.Close()
	if _, err := f.Write(append(line, '\n')); err != nil {
		return fmt.Errorf("store a head of the chain: %w", err)
	}
	if err := f.Sync(); err != nil {
		return fmt.Errorf("store a head of the chain: %w", err)
	}
	a.number, a.at = h.Number, time.Now()
	return nil
}
