package callback

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/parley-server/parley/db"
	"github.com/parley-server/parley/internal/replan"
)

// ErrShown means that a workspace's secret was already shown. Rotate makes another one.
var ErrShown = errors.New("the secret was shown before")

// Secret returns a workspace's signing secret once, and creates it if necessary. The second time it
// fails with ErrShown.
func (s *Store) Secret(ctx context.Context, workspace uuid.UUID) (string, error) {
	if _, err := s.openSecrets(ctx, workspace); err != nil {
		return "", err
	}
	row, err := s.q.SecretShow(ctx, workspace)
	if errors.Is(err, pgx.ErrNoRows) {
		return "", ErrShown
	}
	if err != nil {
		return "", fmt.Errorf("read the signing secret: %w", err)
	}
	secret, err := s.unsealSecret(workspace, row.ID, row.Secret)
	return FormatSecret(secret), err
}

// Rotate creates and returns a new secret. The previous one also signs for the overlap; older ones
// end now.
func (s *Store) Rotate(ctx context.Context, workspace uuid.UUID, overlap time.Duration) (string, error) {
	secret := newSecret()
	err := replan.InTx(ctx, s.pool, func(tx pgx.Tx) error {
		if err := s.q.WithTx(tx).SecretsRetire(ctx, workspace, overlap.Seconds()); err != nil {
			return fmt.Errorf("retire the signing secret: %w", err)
		}
		made, err := s.addSecret(ctx, tx, workspace, secret, true)
		if err == nil && !made {
			err = errors.New("another request rotated the signing secret at the same moment")
		}
		return err
	})
	return FormatSecret(secret), err
}

// SecretState is the public data of a signing secret that signs now.
type SecretState struct {
	ID        uuid.UUID  `json:"secret_id"`
	Shown     bool       `json:"shown"`
	CreatedAt time.Time  `json:"created_at"`
	ExpiresAt *time.Time `json:"expires_at"` // null: the newest
}

// Secrets lists the signing secrets of a workspace, newest first. There is none before the first
// callback.
func (s *Store) Secrets(ctx context.Context, workspace uuid.UUID) ([]SecretState, error) {
	rows, err := s.q.SecretsState(ctx, workspace)
	if err != nil {
		return nil, fmt.Errorf("list signing secrets: %w", err)
	}
	list := make([]SecretState, len(rows))
	for i, r := range rows {
		list[i] = SecretState{r.ID, r.Shown, r.CreatedAt.UTC(), utcTime(r.ExpiresAt)}
	}
	return list, nil
}

// openSecrets returns the secrets that a workspace signs with now, newest first. The first call
// creates one.
func (s *Store) openSecrets(ctx context.Context, workspace uuid.UUID) ([][]byte, error) {
	for {
		rows, err := s.q.SecretsLive(ctx, workspace)
		if err != nil {
			return nil, fmt.Errorf("read signing secrets: %w", err)
		}
		if len(rows) == 0 {
			if _, err := s.addSecret(ctx, replan.Pool{Pool: s.pool}, workspace, newSecret(), false); err != nil {
				return nil, err
			}
			continue
		}
		all := make([][]byte, len(rows))
		for i, r := range rows {
			if all[i], err = s.unsealSecret(workspace, r.ID, r.Secret); err != nil {
				return nil, err
			}
		}
		return all, nil
	}
}

// addSecret stores a secret; made is false if the workspace already has a newest one.
func (s *Store) addSecret(ctx context.Context, on db.DBTX, workspace uuid.UUID, secret []byte, shown bool) (made bool, err error) {
	id := uuid.Must(uuid.NewV7())
	sealed, err := s.keys.Seal(secret, sealedFor, workspace.String(), id.String())
	if err != nil {
		return false, fmt.Errorf("seal the signing secret: %w", err)
	}
	n, err := db.New(on).SecretInsert(ctx, id, workspace, sealed, shown)
	if err != nil {
		return false, fmt.Errorf("insert the signing secret: %w", err)
	}
	return n > 0, nil
}

// sealedFor is the vault's purpose for the sealed value.
const sealedFor = "callback secret"

func (s *Store) unsealSecret(workspace, id uuid.UUID, sealed []byte) ([]byte, error) {
	secret, err := s.keys.Open(sealed, sealedFor, workspace.String(), id.String())
	if err != nil {
		return nil, fmt.Errorf("open the signing secret: %w", err)
	}
	return secret, nil
}
