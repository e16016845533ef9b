package vault

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/parley-server/parley/db"
	"github.com/parley-server/parley/internal/replan"
)

// ErrWrongKey means that the database has another master key with this id.
var ErrWrongKey = errors.New("vault: another master key has this id")

const proofPurpose = "proof of a master key"

// Prepare compares the keyring with the database before anything is sealed or opened, and records
// the newest key there. It fails with ErrUnknownKey if data may be sealed under a missing key, and
// with ErrWrongKey.
func (s *Store) Prepare(ctx context.Context) error {
	return replan.InTx(ctx, s.pool, func(tx pgx.Tx) error {
		q := db.New(tx)
		if err := q.VaultKeysLock(ctx); err != nil {
			return fmt.Errorf("lock the vault's keys: %w", err)
		}
		rows, err := q.VaultKeys(ctx)
		if err != nil {
			return fmt.Errorf("read the vault's keys: %w", err)
		}
		newest := s.keys.IDs()[0]
		there := false
		for _, row := range rows {
			_, err := s.keys.Open(row.Proof, proofPurpose, row.ID)
			if errors.Is(err, ErrNotOpened) {
				return fmt.Errorf("%w: %s", ErrWrongKey, row.ID)
			}
			if err != nil {
				return err
			}
			there = there || row.ID == newest
		}
		if there {
			return nil
		}
		proof, err := s.keys.Seal(nil, proofPurpose, newest)
		if err != nil {
			return err
		}
		if err := q.VaultKeyAdd(ctx, newest, proof); err != nil {
			return fmt.Errorf("add a key to the vault: %w", err)
		}
		return nil
	})
}

// Used reports whether data may be sealed, so that a new key would be the wrong one.
func (s *Store) Used(ctx context.Context) (bool, error) {
	rows, err := s.q.VaultKeys(ctx)
	if err != nil {
		return false, fmt.Errorf("read the vault's keys: %w", err)
	}
	return len(rows) > 0, nil
}
