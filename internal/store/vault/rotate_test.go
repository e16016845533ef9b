package vault_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/parley-server/parley/internal/store/vault"
	"github.com/parley-server/parley/internal/testing/dbtest"
	"github.com/parley-server/parley/internal/testing/wait"
)

func TestAWrongOrMissingKeyIsFoundBeforeAnythingIsSealed(t *testing.T) {
	t.Parallel()
	first, second := vault.GenerateKey(), vault.GenerateKey()
	s, pool, _ := world(t, first)
	if used, err := s.Used(t.Context()); err != nil || !used {
		t.Errorf("used: %t, %v", used, err)
	}
	id := s.Keyring().IDs()[0]
	_, text, _ := strings.Cut(second, ":")
	for _, c := range []struct {
		what string
		keys []string
		want error
	}{
		{"the same", []string{first}, nil},
		{"another one", []string{second}, vault.ErrUnknownKey},
		{"another of that id", []string{id + ":" + text}, vault.ErrWrongKey},
		{"the old one not newest", []string{second, first}, nil},
	} {
		if err := vault.New(pool, keyring(t, c.keys...)).Prepare(t.Context()); !errors.Is(err, c.want) ||
			err != nil && !strings.Contains(err.Error(), id) {
			t.Errorf("%s: %v", c.what, err)
		}
	}
	// Both keys are in use now: neither may be missing.
	if err := s.Prepare(t.Context()); !errors.Is(err, vault.ErrUnknownKey) {
		t.Errorf("without the newest: %v", err)
	}
}

// TestOneKeyringWins starts replicas with different keys on a fresh database.
func TestOneKeyringWins(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t)
	if used, err := vault.New(pool, nil).Used(t.Context()); err != nil || used {
		t.Errorf("used: %t, %v", used, err)
	}
	errs := make([]error, 6)
	var wg sync.WaitGroup
	err := pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(t.Context(), `LOCK TABLE vault_keys`); err != nil {
			return err
		}
		for i := range errs {
			k := keyring(t)
			wg.Go(func() { errs[i] = vault.New(pool, k).Prepare(t.Context()) })
		}
		// All of them begin together.
		for waiting := 0; waiting < len(errs); {
			err := tx.QueryRow(t.Context(), `SELECT count(*) FROM pg_locks WHERE relation = 'vault_keys'::regclass AND NOT granted`).Scan(&waiting)
			if err != nil {
				return err
			}
		}
		return nil
	})
	wait.Until(t, "all goroutines", wg.Wait)
	if err != nil {
		t.Fatal(err)
	}
	won := 0
	for _, err := range errs {
		if err == nil {
			won++
		} else if !errors.Is(err, vault.ErrUnknownKey) {
			t.Error(err)
		}
	}
	if won != 1 {
		t.Errorf("%d of %d were let in: %v", won, len(errs), errs)
	}
}

func TestRotationWrapsEverythingUnderTheNewestKey(t *testing.T) {
	t.Parallel()
	first, second := vault.GenerateKey(), vault.GenerateKey()
	stale, pool, w := world(t, first)
	register(t, stale, w, vault.Registration{Name: "TOKEN", Hosts: []string{"a.example.com"}, Value: secret("long enough")})
	register(t, stale, w, vault.Registration{Name: "EMPTY", Hosts: []string{"a.example.com"}})
	// A table of another owner takes part through the type of its column.
	exec(t, pool, `CREATE TABLE "Odd names" (id int, "the prompt" sealed)`)
	seal := func(k *vault.Keyring, id int) []byte {
		sealed, err := k.Seal(fmt.Appendf(nil, "prompt %d", id), "prompt", fmt.Sprint(id))
		if err != nil {
			t.Fatal(err)
		}
		return sealed
	}
	const rows = 450
	for id := range rows {
		exec(t, pool, `INSERT INTO "Odd names" VALUES ($1, $2), (-1, null)`, id, seal(stale.Keyring(), id))
	}
	s := vault.New(pool, keyring(t, second, first))
	// The service keeps changing rows meanwhile.
	var wg sync.WaitGroup
	wg.Go(func() {
		for id := range 50 {
			sealed, err := s.Keyring().Seal([]byte("changed"), "prompt", fmt.Sprint(id))
			if err == nil {
				_, err = pool.Exec(t.Context(), `UPDATE "Odd names" SET "the prompt" = $2 WHERE id = $1`, id, sealed)
			}
			if err != nil {
				t.Error(err)
			}
		}
	})
	done, err := s.Rotate(t.Context())
	wait.Until(t, "all goroutines", wg.Wait)
	if err != nil || !slices.Equal(done.Retired, stale.Keyring().IDs()) || done.Rewrapped < rows-50+1 || done.Rewrapped > rows+1 {
		t.Errorf("rotation: %+v, %v", done, err)
	}
	recent := vault.New(pool, keyring(t, second))
	if err := recent.Prepare(t.Context()); err != nil {
		t.Errorf("without the old key: %v", err)
	}
	if got := valueOf(t, recent, w, "TOKEN"); got != "long enough" {
		t.Errorf("opened %q", got)
	}
	q, err := pool.Query(t.Context(), `SELECT id, "the prompt" FROM "Odd names" WHERE id >= 0`)
	if err != nil {
		t.Fatal(err)
	}
	type row struct {
		ID     int
		Prompt []byte
	}
	all, err := pgx.CollectRows(q, pgx.RowToStructByPos[row])
	if err != nil || len(all) != rows {
		t.Fatalf("%d rows, %v", len(all), err)
	}
	for _, r := range all {
		want := fmt.Sprintf("prompt %d", r.ID)
		if r.ID < 50 {
			want = "changed"
		}
		if plain, err := recent.Keyring().Open(r.Prompt, "prompt", fmt.Sprint(r.ID)); err != nil || string(plain) != want {
			t.Errorf("prompt %d: %q, %v", r.ID, plain, err)
		}
	}
	if again, err := s.Rotate(t.Context()); err != nil || again.Rewrapped != 0 || again.Retired != nil {
		t.Errorf("again: %+v, %v", again, err)
	}
	// A replica with only the old key cannot seal anything that would be lost.
	if err := setSecret(t, stale, pool, w, "EMPTY", secret("long enough")); err == nil {
		t.Error("sealed under a retired key")
	}
}

func TestRotationStopsAtWhatItCannotOpen(t *testing.T) {
	t.Parallel()
	s, pool, w := world(t)
	register(t, s, w, vault.Registration{Name: "TOKEN", Hosts: []string{"a.example.com"}, Value: secret("long enough")})
	lost := keyring(t)
	sealed, err := lost.Seal([]byte("x"), "prompt")
	if err != nil {
		t.Fatal(err)
	}
	exec(t, pool, `CREATE TABLE prompts (prompt sealed)`)
	exec(t, pool, `INSERT INTO prompts VALUES ($1)`, sealed)
	next := vault.New(pool, keyring(t, vault.GenerateKey()))
	if _, err := next.Rotate(t.Context()); !errors.Is(err, vault.ErrUnknownKey) {
		t.Errorf("without the old key: %v", err)
	}
	if _, err := s.Rotate(t.Context()); !errors.Is(err, vault.ErrUnknownKey) || !strings.Contains(err.Error(), "prompts.prompt") ||
		!strings.Contains(err.Error(), lost.IDs()[0]) {
		t.Errorf("a row without an owner: %v", err)
	}
}

// TestWhatIsSealedIsDeclaredSo finds bytea columns that are neither known to be harmless nor of the
// type that rotation searches for.
func TestWhatIsSealedIsDeclaredSo(t *testing.T) {
	t.Parallel()
	plain := []string{
		"api_keys.secret_hash", "web_sessions.secret_hash", "login_links.hash", "oidc_states.hash", // hashes
		"tool_links.code_hash", "tool_links.state_hash",
		"turns.request_hash", "idempotency_keys.hash", "idempotent_answers.hash",
		"tool_replies.sha256", "tool_definitions.hash", "tool_definitions.offered_hash",
		"files.sha256", "files.request_hash",
		// responses to decisions and cancels
		"idempotent_answers.answer",
		// contents of files
		"file_chunks.data",
		// and folders
		"work_blobs.sha256", "work_files.sha256", "work_files.path_sha256", "work_chunks.data", "work_files.path", "work_files.target",
		"chain_links.entries", "chain_links.salt", "chain_links.digest", "chain_links.hash", "chain_links.signature", // digests
		"chain_keys.public_key", "chain_keys.endorsement", "chain_keys.backing",
		"callback_deliveries.body", // bodies of callbacks: answers, which are in messages too
	}
	rows, err := dbtest.New(t).Query(t.Context(), `
		SELECT c.relname || '.' || a.attname FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
		WHERE a.atttypid = 'bytea'::regtype AND c.relkind IN ('r', 'p') AND c.relnamespace = current_schema()::regnamespace AND c.relname NOT LIKE 'river%'`)
	if err != nil {
		t.Fatal(err)
	}
	columns, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range columns {
		if !slices.Contains(plain, c) {
			t.Errorf("%s is bytea: if the vault seals it, its type is sealed; if not, add it to the list", c)
		}
	}
}
