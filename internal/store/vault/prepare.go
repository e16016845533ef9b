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
		recorded, err := s.compareKeys(rows)
		if err != nil || recorded {
			return err
		}
		newest := s.keys.IDs()[0]
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

// Check is Prepare without a change of the database.
func (s *Store) Check(ctx context.Context) error {
	rows, err := s.q.VaultKeys(ctx)
	if err != nil {
		return fmt.Errorf("read the vault's keys: %w", err)
	}
	_, err = s.compareKeys(rows)
	return err
}

// compareKeys reports whether the newest key of the keyring is among the recorded ones, which the
// keyring must have.
func (s *Store) compareKeys(rows []db.VaultKeysRow) (recorded bool, err error) {
	for _, row := range rows {
		_, err := s.keys.Open(row.Proof, proofPurpose, row.ID)
		if errors.Is(err, ErrNotOpened) {
			return false, fmt.Errorf("%w: %s", ErrWrongKey, row.ID)
		}
		if err != nil {
			return false, err
		}
		recorded = recorded || row.ID == s.keys.IDs()[0]
	}
	return recorded, nil
}

// Used reports whether data may be sealed, so that a new key would be the wrong one.
func (s *Store) Used(ctx context.Context) (bool, error) {
	rows, err := s.q.VaultKeys(ctx)
	if err != nil {
		return false, fmt.Errorf("read the vault's keys: %w", err)
	}
	return len(rows) > 0, nil
}
