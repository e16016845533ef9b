package callback

import (
	"context"
	"fmt"

	"github.com/google/uuid"
)

// addressPurpose is the vault's purpose for the addresses of callbacks.
const addressPurpose = "callback address"

// sealAddress encrypts the address of a callback: its path and query can hold credentials.
func (s *Store) sealAddress(workspace, turn uuid.UUID, name, plain string) ([]byte, error) {
	sealed, err := s.keys.Seal([]byte(plain), addressPurpose, workspace.String(), turn.String(), name)
	if err != nil {
		return nil, fmt.Errorf("seal the address of a callback: %w", err)
	}
	return sealed, nil
}

// openAddress returns the address of a callback. A plain address is newer than a sealed one in the
// same row: a process of an older release wrote it.
func (s *Store) openAddress(workspace, turn uuid.UUID, name, plain string, sealed []byte) (string, error) {
	if plain != "" || sealed == nil {
		return plain, nil
	}
	address, err := s.keys.Open(sealed, addressPurpose, workspace.String(), turn.String(), name)
	if err != nil {
		return "", fmt.Errorf("open the address of a callback: %w", err)
	}
	return string(address), nil
}

// sealAtOnce is the number of addresses that one call of SealAddresses seals.
const sealAtOnce = 500

// SealAddresses seals plain addresses, which processes of an older release store. It seals some of
// them; the caller calls it again.
func (s *Store) SealAddresses(ctx context.Context) error {
	rows, err := s.q.CallbacksPlain(ctx, sealAtOnce)
	if err != nil {
		return fmt.Errorf("list plain addresses: %w", err)
	}
	for _, r := range rows {
		address, err := s.sealAddress(r.WorkspaceID, r.TurnID, r.Name, r.URL)
		if err != nil {
			return err
		}
		if err := s.q.CallbackSeal(ctx, address, r.ID, r.URL); err != nil {
			return fmt.Errorf("store the sealed address of a callback: %w", err)
		}
	}
	return nil
}
